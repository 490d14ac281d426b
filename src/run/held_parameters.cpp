// SPDX-License-Identifier: Apache-2.0
#include "run/held_parameters.h"

#include "model/parameters.h"

namespace penstock::run {
namespace {

// Of the first rank: blocks that are longer come first.
std::int64_t held(const Run& run, const model::ParameterShape& parameter) {
  const mesh::Shard shard = mesh::shard_of(parameter.name, parameter.sizes, run.sharding(), {});
  std::int64_t elements = shard.held;
  for (std::size_t i = 0; i < parameter.sizes.size(); ++i) {
    if (static_cast<int>(i) != shard.dimension) elements *= parameter.sizes[i];
  }
  return elements;
}

std::int64_t experts_by_layer(const Run& run) {
  const model::Shape& shape = run.shape();
  return shape.experts == 1 ? 0 : shape.experts / run.mesh.expert * model::expert_parameters(shape);
}

std::int64_t held_by_layer(const Run& run) {
  const model::Shape& shape = run.shape();
  const bool dense = shape.experts == 1;
  std::int64_t elements = model::router_parameters(shape);
  for (const model::ParameterShape& parameter : model::layer_parameter_shapes(shape, 0)) {
    const mesh::Cut cut = mesh::cut_of(parameter.name);
    const bool of_mlp = cut == mesh::Cut::Rows || cut == mesh::Cut::Columns;
    if (dense || !of_mlp) elements += held(run, parameter);
  }
  return elements + experts_by_layer(run);
}

std::int64_t held_of_matrix(const Run& run) {
  return held(run, {"model.embed_tokens.weight", {run.shape().vocab, run.shape().hidden}});
}

}  // namespace

HeldParameters held_by_stage(const Run& run, int stage) {
  const bool last = stage + 1 == run.stages();
  const std::int64_t matrix = run.sharded_vocabulary() ? 0 : held_of_matrix(run);
  std::int64_t weights = run.layers[stage].count * held_by_layer(run);
  if (stage == 0) weights += matrix;
  if (last) weights += run.shape().hidden;  // the final norm
  const bool alias = run.shape().tied_embeddings && run.stages() == 1;
  if (last && !alias) weights += matrix;
  return {weights, last && alias ? weights + matrix : weights,
          run.layers[stage].count * experts_by_layer(run)};
}

HeldParameters vocabulary_held(const Run& run) {
  const std::int64_t matrix = held_of_matrix(run);
  return {run.shape().tied_embeddings ? matrix : 2 * matrix, 2 * matrix, 0};
}

}  // namespace penstock::run
