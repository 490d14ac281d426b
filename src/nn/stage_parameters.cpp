// SPDX-License-Identifier: Apache-2.0
#include "nn/stage_parameters.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "nn/allocator.h"

namespace penstock::nn {
namespace {

constexpr double kDeviation = 0.02;
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";

// Makes parameters of one precision and seed.
struct Maker {
  at::ScalarType weight_type;
  at::ScalarType master_type;
  std::uint64_t seed;

  Parameter norm(const std::string& name, std::int64_t size) const {
    return finished({.name = name, .master = at::ones({size}, at::TensorOptions().dtype(master_type))});
  }

  // `values_of`: the name whose initial values it takes.
  Parameter matrix(const std::string& name, std::int64_t rows, std::int64_t columns, double deviation,
                   const std::string& values_of) const {
    at::Tensor master = at::empty({rows, columns}, at::TensorOptions().dtype(master_type));
    fill(master, stream_key(seed, hash(values_of)), deviation);
    return finished({.name = name, .master = master, .is_matrix = true});
  }
  Parameter matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                   double deviation = kDeviation) const {
    return matrix(name, rows, columns, deviation, name);
  }

  Parameter finished(Parameter parameter) const {
    parameter.weight = parameter.master.to(weight_type);
    parameter.gradient = at::zeros(parameter.master.sizes(), parameter.master.options());
    recount(parameter.master, Category::Optimizer);
    recount(parameter.weight, Category::Weights);  // the same tensor unless bf16
    recount(parameter.gradient, Category::Gradients);
    return parameter;
  }

  static void fill(at::Tensor& values, std::uint64_t key, double deviation) {
    const bool wide = values.scalar_type() == at::kDouble;
    void* data = values.data_ptr();
    at::parallel_for(0, values.numel(), 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double value = deviation * normal(key, static_cast<std::uint64_t>(i));
        if (wide) {
          static_cast<double*>(data)[i] = value;
        } else {
          static_cast<float*>(data)[i] = static_cast<float>(value);
        }
      }
    });
  }
};

void add_layer(const Maker& make, const model::Shape& shape, std::int64_t layer,
               std::vector<Parameter>& parameters) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const double towards_residual = kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
  parameters.push_back(make.norm(prefix + "input_layernorm.weight", shape.hidden));
  parameters.push_back(make.matrix(prefix + "self_attn.q_proj.weight", shape.query_width(), shape.hidden));
  parameters.push_back(make.matrix(prefix + "self_attn.k_proj.weight", shape.kv_width(), shape.hidden));
  parameters.push_back(make.matrix(prefix + "self_attn.v_proj.weight", shape.kv_width(), shape.hidden));
  parameters.push_back(
      make.matrix(prefix + "self_attn.o_proj.weight", shape.hidden, shape.query_width(), towards_residual));
  parameters.push_back(make.norm(prefix + "post_attention_layernorm.weight", shape.hidden));
  parameters.push_back(make.matrix(prefix + "mlp.gate_proj.weight", shape.ffn, shape.hidden));
  parameters.push_back(make.matrix(prefix + "mlp.up_proj.weight", shape.ffn, shape.hidden));
  parameters.push_back(
      make.matrix(prefix + "mlp.down_proj.weight", shape.hidden, shape.ffn, towards_residual));
}

Parameter tied_output(const Maker& make, const StageOptions& options,
                      const std::vector<Parameter>& parameters) {
  const model::Shape& shape = options.shape;
  if (!options.first) {
    Parameter copy = make.matrix(kOutput, shape.vocab, shape.hidden, kDeviation, kEmbedding);
    copy.replica = Replica::Copy;
    return copy;
  }
  const Parameter& owner = parameters.front();
  const at::Tensor gradient = at::zeros(owner.gradient.sizes(), owner.gradient.options());
  recount(gradient, Category::Gradients);
  return {.name = kOutput,
          .weight = owner.weight,
          .master = owner.master,
          .gradient = gradient,
          .is_matrix = true,
          .replica = Replica::Alias};
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

std::vector<Parameter> make_parameters(const StageOptions& options) {
  const model::Shape& shape = options.shape;
  const at::ScalarType type = compute_type(options.precision);
  const Maker make{type, type == at::kDouble ? at::kDouble : at::kFloat, options.seed};
  std::vector<Parameter> parameters;
  if (options.first) parameters.push_back(make.matrix(kEmbedding, shape.vocab, shape.hidden));
  for (std::int64_t layer = 0; layer < options.layers.count; ++layer) {
    add_layer(make, shape, options.layers.first + layer, parameters);
  }
  if (options.last) {
    parameters.push_back(make.norm("model.norm.weight", shape.hidden));
    parameters.push_back(shape.tied_embeddings ? tied_output(make, options, parameters)
                                               : make.matrix(kOutput, shape.vocab, shape.hidden));
  }
  return parameters;
}

Parameter& parameter_named(std::vector<Parameter>& parameters, const std::string& name) {
  for (Parameter& parameter : parameters) {
    if (parameter.name == name) return parameter;
  }
  PENSTOCK_CHECK(false, "a stage asks only for parameters that it made");
  return parameters.front();
}

}  // namespace penstock::nn
