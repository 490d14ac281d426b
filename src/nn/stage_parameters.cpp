// SPDX-License-Identifier: Apache-2.0
#include "nn/stage_parameters.h"

#include <cmath>

#include "base/error.h"
#include "nn/allocator.h"

namespace penstock::nn {
namespace {

void add_layer(const ParameterMaker& make, const model::Shape& shape, std::int64_t layer,
               std::vector<Parameter>& parameters) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const double towards_residual = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
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

Parameter tied_output(const ParameterMaker& make, const StageOptions& options,
                      const std::vector<Parameter>& parameters) {
  const model::Shape& shape = options.shape;
  if (options.first) return make.alias(parameters.front());
  Parameter copy = make.matrix(kOutputName, shape.vocab, shape.hidden, kInitialDeviation, kEmbeddingName);
  copy.tied = true;
  copy.shard.copy = 1;
  return copy;
}

}  // namespace

std::vector<Parameter> make_parameters(const StageOptions& options) {
  const model::Shape& shape = options.shape;
  const ParameterMaker make(options.precision, options.seed, options.states);
  std::vector<Parameter> parameters;
  if (options.first) parameters.push_back(make.matrix(kEmbeddingName, shape.vocab, shape.hidden));
  for (std::int64_t layer = 0; layer < options.layers.count; ++layer) {
    add_layer(make, shape, options.layers.first + layer, parameters);
  }
  if (options.last) {
    parameters.push_back(make.norm(kFinalNormName, shape.hidden));
    parameters.push_back(shape.tied_embeddings ? tied_output(make, options, parameters)
                                               : make.matrix(kOutputName, shape.vocab, shape.hidden));
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
