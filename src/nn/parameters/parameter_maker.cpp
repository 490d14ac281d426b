// SPDX-License-Identifier: Apache-2.0
#include "nn/parameters/parameter_maker.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "backend/device.h"
#include "backend/memory.h"
#include "base/error.h"
#include "base/random.h"
#include "nn/kernels/cpu/vectorised.h"

namespace penstock::nn {
namespace {

template <class T>
PENSTOCK_VECTORISED void fill_normal(T* values, std::int64_t count, std::uint64_t key, std::uint64_t first,
                                     double deviation) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(deviation * normal(key, first + i));
}

}  // namespace

at::ScalarType compute_type(model::Precision precision) {
  switch (precision) {
    case model::Precision::F64:
      return at::kDouble;
    case model::Precision::F32:
      return at::kFloat;
    case model::Precision::BF16:
      return at::kBFloat16;
  }
  return at::kFloat;
}

ParameterMaker::ParameterMaker(model::Precision precision, std::uint64_t seed, const StateLayout& states)
    : weight_type_(compute_type(precision)),
      master_type_(weight_type_ == at::kDouble ? at::kDouble : at::kFloat),
      seed_(seed),
      states_(states) {}

Parameter ParameterMaker::norm(const std::string& name, std::int64_t size, int copy) const {
  Parameter parameter = with_room({.name = name, .sizes = {size}, .shard = mesh::padded_block(size, 1, 0)});
  parameter.shard.copy = copy;
  parameter.master.fill_(1);
  weight_from_master(parameter);
  return parameter;
}

Parameter ParameterMaker::shard(const std::string& name, const std::vector<std::int64_t>& sizes,
                                const mesh::Shard& shard, double deviation,
                                const std::string& values_of) const {
  PENSTOCK_CHECK(shard.dimension == 0 || shard.held == shard.count, "only rows are padded");
  Parameter parameter = with_room({.name = name, .is_matrix = true, .sizes = sizes, .shard = shard});
  if (shard.held > shard.count) parameter.master.zero_();
  const std::uint64_t key = stream_key(seed_, hash(values_of.empty() ? name : values_of));
  backend::change_on_host(parameter.master, [&](const at::Tensor& values) {
    auto* bytes = static_cast<std::byte*>(values.mutable_data_ptr());
    for (const mesh::Range& range : mesh::ranges_of(shard, sizes, parameter.share()))
      fill(bytes + range.own_begin * values.element_size(), key, range, deviation);
  });
  weight_from_master(parameter);
  return parameter;
}

Parameter ParameterMaker::alias(const Parameter& embedding) const {
  Parameter output = embedding;
  output.name = kOutputName;
  if (embedding.gradient.defined()) {
    output.gradient = at::zeros(embedding.gradient.sizes(), embedding.gradient.options());
    backend::recount(output.gradient, model::Category::Gradients);
  }
  output.tied = true;
  output.shard.copy = 1;
  return output;
}

// Allocates tensors without values, except that gradients are zero.
Parameter ParameterMaker::with_room(Parameter parameter) const {
  parameter.sharding = states_.sharding;
  const at::TensorOptions masters = backend::on_device(master_type_);
  const std::vector<std::int64_t> held = parameter.held_sizes();
  const bool own_masters = weight_type_ != master_type_ || states_.sharded_weights;
  const bool whole = parameter.sharding.shards == 1;
  if (!states_.sharded_weights) {
    parameter.weight = at::empty(held, masters.dtype(weight_type_));
    parameter.gradient = at::zeros(held, masters);
    backend::recount(parameter.gradient, model::Category::Gradients);
  }
  if (own_masters) {
    const std::vector<std::int64_t> flat{parameter.share().count};
    parameter.master = at::empty(whole ? held : flat, masters);
    backend::recount(parameter.master, model::Category::Optimizer);
  } else {
    parameter.master = parameter.own_part(parameter.weight);
  }
  if (parameter.weight.defined()) backend::recount(parameter.weight, model::Category::Weights);
  return parameter;
}

void ParameterMaker::fill(void* values, std::uint64_t key, const mesh::Range& range, double deviation) const {
  const bool wide = master_type_ == at::kDouble;
  at::parallel_for(0, range.count, 4096, [&](std::int64_t begin, std::int64_t end) {
    const auto fill_part = [&](auto* all) {
      fill_normal(all + begin, end - begin, key, static_cast<std::uint64_t>(range.begin + begin), deviation);
    };
    wide ? fill_part(static_cast<double*>(values)) : fill_part(static_cast<float*>(values));
  });
}

}  // namespace penstock::nn
