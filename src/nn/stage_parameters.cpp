// SPDX-License-Identifier: Apache-2.0
#include "nn/stage_parameters.h"

#include <cmath>

#include "backend/memory.h"
#include "base/error.h"
#include "mesh/shard.h"
#include "model/parameters.h"

namespace penstock::nn {
namespace {

// Makes the parameters of one shard of the tensor group.
class ShardMaker {
 public:
  ShardMaker(const StageOptions& options, int shards, int number)
      : options_(options),
        make_(options.precision, options.seed, options.states),
        make_expert_(options.precision, options.seed,
                     {options.experts.sharding, options.states.sharded_weights}),
        sharding_{.mesh = {.tensor = shards},
                  .heads = options.shape.heads,
                  .kv_heads = options.shape.kv_heads,
                  .experts = options.shape.experts},
        number_(number) {}

  void add_embedding(std::vector<Parameter>& parameters) const {
    parameters.push_back(matrix(kEmbeddingName, shape().vocab, shape().hidden));
  }

  void add_layer(std::int64_t layer, std::vector<Parameter>& parameters) const {
    for (const auto& [name, sizes] : model::layer_parameter_shapes(shape(), layer)) {
      if (sizes.size() == 1) {
        parameters.push_back(make_.norm(name, sizes[0], number_));
      } else if (mesh::cut_of(name) != mesh::Cut::Expert) {
        parameters.push_back(matrix(name, sizes[0], sizes[1], deviation_of(name)));
      } else if (options_.experts.own.holds(mesh::expert_of(name))) {
        const mesh::Shard whole = mesh::padded_block(sizes[0], 1, 0);
        parameters.push_back(make_expert_.shard(name, sizes, whole, deviation_of(name)));
      }
    }
  }

  // `embedding`: this shard's, null if the stage has none; may be an element of `parameters`.
  void add_output(const Parameter* embedding, std::vector<Parameter>& parameters) const {
    Parameter output =
        shape().tied_embeddings ? tied_output(embedding) : matrix(kOutputName, shape().vocab, shape().hidden);
    parameters.push_back(norm(kFinalNormName));  // may invalidate `embedding`
    parameters.push_back(std::move(output));
  }

 private:
  const model::Shape& shape() const { return options_.shape; }

  Parameter norm(const std::string& name) const { return make_.norm(name, shape().hidden, number_); }

  // Matrices that write to the residual stream start smaller.
  double deviation_of(const std::string& name) const {
    const auto is = [&](const char* part) { return name.ends_with(std::string(part) + ".weight"); };
    if (!is("o_proj") && !is("down_proj") && !is(".w2")) return kInitialDeviation;
    return kInitialDeviation / std::sqrt(2.0 * static_cast<double>(shape().layers));
  }

  Parameter matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                   double deviation = kInitialDeviation, const std::string& values_of = {}) const {
    const std::vector<std::int64_t> sizes{rows, columns};
    mesh::Shard shard = mesh::shard_of(name, sizes, sharding_, {.tensor = number_});
    if (sharding_.mesh.tensor == 1) shard = mesh::padded_block(rows, 1, 0);  // one range, whatever the cut
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
  ParameterMaker make_, make_expert_;
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
