// SPDX-License-Identifier: Apache-2.0
#include "nn/stage_parameters.h"

#include <cmath>

#include "base/error.h"
#include "nn/allocator.h"

namespace penstock::nn {
namespace {

// Makes the parameters of one shard of the tensor group.
class ShardMaker {
 public:
  ShardMaker(const StageOptions& options, int shards, int number)
      : options_(options),
        make_(options.precision, options.seed, options.states),
        sharding_{.mesh = {.tensor = shards},
                  .heads = options.shape.heads,
                  .kv_heads = options.shape.kv_heads,
                  .experts = options.shape.experts},
        number_(number) {}

  void add_embedding(std::vector<Parameter>& parameters) const {
    parameters.push_back(matrix(kEmbeddingName, shape().vocab, shape().hidden));
  }

  void add_layer(std::int64_t layer, std::vector<Parameter>& parameters) const {
    const model::Shape& shape = options_.shape;
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const double towards_residual = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
    const auto add = [&](const char* name, std::int64_t rows, std::int64_t columns,
                         double deviation = kInitialDeviation) {
      parameters.push_back(matrix(prefix + name + ".weight", rows, columns, deviation));
    };
    parameters.push_back(norm(prefix + "input_layernorm.weight"));
    add("self_attn.q_proj", shape.query_width(), shape.hidden);
    add("self_attn.k_proj", shape.kv_width(), shape.hidden);
    add("self_attn.v_proj", shape.kv_width(), shape.hidden);
    add("self_attn.o_proj", shape.hidden, shape.query_width(), towards_residual);
    parameters.push_back(norm(prefix + "post_attention_layernorm.weight"));
    add("mlp.gate_proj", shape.ffn, shape.hidden);
    add("mlp.up_proj", shape.ffn, shape.hidden);
    add("mlp.down_proj", shape.hidden, shape.ffn, towards_residual);
  }

  // `embedding`: of this shard, if the stage has it.
  void add_output(const Parameter* embedding, std::vector<Parameter>& parameters) const {
    parameters.push_back(norm(kFinalNormName));
    parameters.push_back(shape().tied_embeddings ? tied_output(embedding)
                                                 : matrix(kOutputName, shape().vocab, shape().hidden));
  }

 private:
  const model::Shape& shape() const { return options_.shape; }

  Parameter norm(const std::string& name) const { return make_.norm(name, shape().hidden, number_); }

  Parameter matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                   double deviation = kInitialDeviation, const std::string& values_of = {}) const {
    const std::vector<std::int64_t> sizes{rows, columns};
    mesh::Shard shard = mesh::shard_of(name, sizes, sharding_, {.tensor = number_});
    if (sharding_.mesh.tensor == 1) shard = mesh::padded_block(rows, 1, 0);  // one range, however it is cut
    return make_.shard(name, sizes, shard, deviation, values_of);
  }

  Parameter tied_output(const Parameter* embedding) const {
    if (embedding) return make_.alias(*embedding);
    Parameter copy = matrix(kOutputName, shape().vocab, shape().hidden, kInitialDeviation, kEmbeddingName);
    copy.tied = true;
    copy.shard.copy = 1;
    return copy;
  }

  const StageOptions& options_;
  ParameterMaker make_;
  mesh::Sharding sharding_;
  int number_;
};

}  // namespace

std::vector<std::vector<Parameter>> make_parameters(const StageOptions& options, const TensorGroup& group) {
  std::vector<std::vector<Parameter>> shards;
  for (int i = 0; i < group.own(); ++i) {
    const ShardMaker make(options, group.shards(), group.shard_of(i));
    std::vector<Parameter>& parameters = shards.emplace_back();
    if (options.first) make.add_embedding(parameters);
    for (std::int64_t layer = 0; layer < options.layers.count; ++layer)
      make.add_layer(options.layers.first + layer, parameters);
    if (options.last) make.add_output(options.first ? &parameters.front() : nullptr, parameters);
  }
  return shards;
}

Parameter& parameter_named(std::span<Parameter> parameters, const std::string& name) {
  for (Parameter& parameter : parameters) {
    if (parameter.name == name) return parameter;
  }
  PENSTOCK_CHECK(false, "a stage asks only for parameters that it made");
  return parameters.front();
}

}  // namespace penstock::nn
