// SPDX-License-Identifier: Apache-2.0
#include "run/held_parameters.h"

#include <algorithm>

#include "model/parameters.h"
#include "run/replicas.h"

namespace penstock::run {
namespace {

// So many tensors of so many elements, shared by so many ranks, on the first of these: longer shares come
// first.
HeldParameters tensors(std::int64_t count, std::int64_t elements, std::int64_t shards) {
  const std::int64_t share = mesh::flat_share(elements, shards, 0).count;
  return {count * elements, count * elements, count * share, share};
}

std::int64_t shards_of(const Run& run) { return sharing_of(run, {}).shards; }

HeldParameters held_by_shard(const Run& run, const model::ParameterShape& parameter, int tensor_shard) {
  const mesh::Shard shard =
      mesh::shard_of(parameter.name, parameter.sizes, run.sharding(), {.tensor = tensor_shard});
  std::int64_t elements = shard.held;
  for (std::size_t i = 0; i < parameter.sizes.size(); ++i) {
    if (static_cast<int>(i) != shard.dimension) elements *= parameter.sizes[i];
  }
  return tensors(1, elements, shards_of(run));
}

// Of the first rank: blocks that are longer come first. Each of its logical shards has tensors of its own.
HeldParameters held(const Run& run, const model::ParameterShape& parameter) {
  HeldParameters sum;
  for (int shard = 0; shard < run.shards_of_rank(); ++shard) sum += held_by_shard(run, parameter, shard);
  return sum;
}

// Whole experts, which t·c·d/e ranks replicate.
HeldParameters experts_by_layer(const Run& run) {
  const model::Shape& shape = run.shape();
  const std::int64_t experts = shape.experts / run.mesh.expert;
  HeldParameters sum;
  for (int matrix = 0; matrix < 3; ++matrix)  // gate, up, down
    sum += tensors(experts, shape.hidden * shape.ffn, expert_sharing_of(run, {}).shards);
  return sum;
}

HeldParameters held_by_layer(const Run& run) {
  const model::Shape& shape = run.shape();
  HeldParameters layer;
  for (const model::ParameterShape& parameter : model::layer_parameter_shapes(shape, 0)) {
    if (mesh::cut_of(parameter.name) != mesh::Cut::Expert) layer += held(run, parameter);
  }
  if (shape.experts > 1) layer += experts_by_layer(run);
  return layer;
}

// The other side of a tied matrix that is on this rank.
HeldParameters gradient_alone(const HeldParameters& matrix) {
  return {0, matrix.gradients, 0, matrix.longest};
}

HeldParameters times(const HeldParameters& one, std::int64_t count) {
  return {count * one.weights, count * one.gradients, count * one.states, one.longest};
}

}  // namespace

HeldParameters& HeldParameters::operator+=(const HeldParameters& other) {
  weights += other.weights;
  gradients += other.gradients;
  states += other.states;
  longest = std::max(longest, other.longest);
  return *this;
}

HeldParameters matrix_held(const Run& run) {
  return held(run, {"model.embed_tokens.weight", {run.shape().vocab, run.shape().hidden}});
}

HeldParameters held_by_stage(const Run& run, int stage) {
  const bool last = stage + 1 == run.stages();
  HeldParameters sum = times(held_by_layer(run), run.layers[stage].count);
  if (last) sum += held(run, {"model.norm.weight", {run.shape().hidden}});
  if (run.sharded_vocabulary()) return sum;
  const HeldParameters matrix = matrix_held(run);
  if (stage == 0) sum += matrix;
  const bool alias = run.shape().tied_embeddings && run.stages() == 1;
  if (last) sum += alias ? gradient_alone(matrix) : matrix;
  return sum;
}

HeldParameters vocabulary_held(const Run& run) {
  HeldParameters sum = matrix_held(run);
  sum += run.shape().tied_embeddings ? gradient_alone(sum) : HeldParameters(sum);
  return sum;
}

}  // namespace penstock::run
