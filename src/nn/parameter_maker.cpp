// SPDX-License-Identifier: Apache-2.0
#include "nn/parameter_maker.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "base/random.h"
#include "nn/allocator.h"

namespace penstock::nn {

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

ParameterMaker::ParameterMaker(model::Precision precision, std::uint64_t seed)
    : weight_type_(compute_type(precision)),
      master_type_(weight_type_ == at::kDouble ? at::kDouble : at::kFloat),
      seed_(seed) {}

Parameter ParameterMaker::norm(const std::string& name, std::int64_t size) const {
  return finished({.name = name, .master = at::ones({size}, at::TensorOptions().dtype(master_type_))});
}

Parameter ParameterMaker::matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                                 double deviation, const std::string& values_of) const {
  at::Tensor master = at::empty({rows, columns}, at::TensorOptions().dtype(master_type_));
  fill(master, values_of.empty() ? name : values_of, 0, rows * columns, deviation);
  return finished({.name = name, .master = master, .is_matrix = true});
}

Parameter ParameterMaker::shard(const std::string& name, std::int64_t first, std::int64_t own,
                                std::int64_t rows, std::int64_t columns) const {
  at::Tensor master = at::zeros({rows, columns}, at::TensorOptions().dtype(master_type_));
  fill(master, name, first * columns, own * columns, kInitialDeviation);
  return finished({.name = name, .master = master, .is_matrix = true, .own_rows = own, .first_row = first});
}

Parameter ParameterMaker::alias(const Parameter& owner) const {
  const at::Tensor gradient = at::zeros(owner.gradient.sizes(), owner.gradient.options());
  recount(gradient, Category::Gradients);
  return {.name = kOutputName,
          .weight = owner.weight,
          .master = owner.master,
          .gradient = gradient,
          .is_matrix = true,
          .replica = Replica::Alias,
          .own_rows = owner.own_rows,
          .first_row = owner.first_row};
}

Parameter ParameterMaker::finished(Parameter parameter) const {
  parameter.weight = parameter.master.to(weight_type_);
  parameter.gradient = at::zeros(parameter.master.sizes(), parameter.master.options());
  recount(parameter.master, Category::Optimizer);
  recount(parameter.weight, Category::Weights);  // the same tensor unless bf16
  recount(parameter.gradient, Category::Gradients);
  return parameter;
}

void ParameterMaker::fill(at::Tensor& values, const std::string& name, std::int64_t first_element,
                          std::int64_t count, double deviation) const {
  const std::uint64_t key = stream_key(seed_, hash(name));
  const bool wide = values.scalar_type() == at::kDouble;
  void* data = values.data_ptr();
  at::parallel_for(0, count, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double value = deviation * normal(key, static_cast<std::uint64_t>(first_element + i));
      if (wide) {
        static_cast<double*>(data)[i] = value;
      } else {
        static_cast<float*>(data)[i] = static_cast<float>(value);
      }
    }
  });
}

}  // namespace penstock::nn
