// SPDX-License-Identifier: Apache-2.0
#include "run/held_parameters.h"

#include <algorithm>

#include "model/parameters.h"
#include "run/replicas.h"

namespace penstock::run {
namespace {

// The rank's share of each tensor's states (mesh::flat_share).
struct StatesShare {
  int shards = 1, shard = 0;

  // 0: first, 1: between, 2: last. The first share has the most whole units, the last the remainder.
  int place() const { return shard == 0 ? 0 : (shard + 1 < shards ? 1 : 2); }
};

// Shares of the tensors that all ranks of a stage have, and of the rank's experts.
struct OwnShares {
  StatesShare dense, experts;
};

OwnShares shares_of(const mesh::StateSharding& dense, const mesh::StateSharding& experts) {
  return {{dense.shards, dense.shard}, {experts.shards, experts.shard}};
}

OwnShares shares_of_first(const Run& run) {
  return shares_of(state_sharding_of(run, {}), expert_sharding_of(run, {}));
}

// `count` tensors of `elements` elements each; `own` is the rank's share of their states.
HeldParameters tensors(std::int64_t count, std::int64_t elements, const StatesShare& own) {
  const std::int64_t share = mesh::flat_share(elements, own.shards, own.shard).count;
  return {count * elements, count * elements, count * share, count * share,
          mesh::longest_flat_share(elements, own.shards)};
}

HeldParameters held_by_shard(const Run& run, const model::ParameterShape& parameter, const OwnShares& own,
                             int tensor_shard) {
  const mesh::Shard shard =
      mesh::shard_of(parameter.name, parameter.sizes, run.sharding(), {.tensor = tensor_shard});
  std::int64_t elements = shard.held;
  for (std::size_t i = 0; i < parameter.sizes.size(); ++i) {
    if (static_cast<int>(i) != shard.dimension) elements *= parameter.sizes[i];
  }
  return tensors(1, elements, own.dense);
}

// For the first tensor rank, since longer blocks come first. Each of its logical shards has its own tensors.
HeldParameters held(const Run& run, const model::ParameterShape& parameter, const OwnShares& own) {
  HeldParameters sum;
  for (int shard = 0; shard < run.shards_of_rank(); ++shard) sum += held_by_shard(run, parameter, own, shard);
  return sum;
}

// Whole experts, which t·c·d/e ranks replicate.
HeldParameters experts_by_layer(const Run& run, const OwnShares& own) {
  const model::Shape& shape = run.shape();
  const std::int64_t experts = shape.experts / run.mesh.expert;
  HeldParameters sum;
  for (int matrix = 0; matrix < 3; ++matrix)  // gate, up, down
    sum += tensors(experts, shape.hidden * shape.ffn, own.experts);
  return sum;
}

HeldParameters held_by_layer(const Run& run, const OwnShares& own) {
  const model::Shape& shape = run.shape();
  HeldParameters layer;
  for (const model::ParameterShape& parameter : model::layer_parameter_shapes(shape, 0)) {
    if (mesh::cut_of(parameter.name) != mesh::Cut::Expert) layer += held(run, parameter, own);
  }
  if (shape.experts > 1) layer += experts_by_layer(run, own);
  return layer;
}

// The second side of a tied matrix whose first side is also on this rank.
HeldParameters gradient_alone(const HeldParameters& matrix) {
  return {0, matrix.gradients, 0, matrix.own_gradients, matrix.longest};
}

HeldParameters times(const HeldParameters& one, std::int64_t count) {
  return {count * one.weights, count * one.gradients, count * one.states, count * one.own_gradients,
          one.longest};
}

HeldParameters matrix_of(const Run& run, const OwnShares& own) {
  return held(run, {model::kEmbeddingName, {run.shape().vocab, run.shape().hidden}}, own);
}

HeldParameters norm_of(const Run& run, int stage, const OwnShares& own) {
  if (stage + 1 < run.stages()) return {};
  return held(run, {model::kFinalNormName, {run.shape().hidden}}, own);
}

HeldParameters stage_of(const Run& run, int stage, const OwnShares& own) {
  const bool last = stage + 1 == run.stages();
  HeldParameters sum = times(held_by_layer(run, own), run.layers[stage].count);
  sum += norm_of(run, stage, own);
  if (run.sharded_vocabulary()) return sum;
  const HeldParameters matrix = matrix_of(run, own);
  if (stage == 0) sum += matrix;
  const bool alias = run.shape().tied_embeddings && run.stages() == 1;
  if (last) sum += alias ? gradient_alone(matrix) : matrix;
  return sum;
}

HeldParameters vocabulary_of(const Run& run, const OwnShares& own) {
  HeldParameters sum = matrix_of(run, own);
  sum += run.shape().tied_embeddings ? gradient_alone(sum) : HeldParameters(sum);
  return sum;
}

// In bf16 none; in f32 and f64 all that do not pass: a sharded vocabulary and the final norm stay.
std::int64_t own_masters(const Run& run, const std::vector<int>& stages, const OwnShares& own,
                         const DeviceParameters& held) {
  if (run.precision == model::Precision::BF16) return 0;
  if (!run.shards_weights()) return held.all.states;
  std::int64_t count = held.vocabulary.states;
  for (const int stage : stages) count += run.sharded_vocabulary() ? norm_of(run, stage, own).states : 0;
  return count;
}

// Distinct shares of all ranks. Shares between the first and the last count as equal.
std::vector<OwnShares> shares_of_ranks(const Run& run) {
  std::vector<OwnShares> found;
  const auto known = [&](const OwnShares& own) {
    return std::ranges::any_of(found, [&](const OwnShares& other) {
      return own.dense.place() == other.dense.place() && own.experts.place() == other.experts.place();
    });
  };
  const std::vector<std::int64_t> expert_replicas = mesh::expert_replicas_of_stage(run.mesh);
  for (std::size_t rank = 0; rank < expert_replicas.size(); ++rank) {
    const mesh::Coordinates at = run.mesh.coordinates_of(static_cast<std::int64_t>(rank));
    const OwnShares own =
        shares_of(state_sharding_of(run, at), sharding_of_expert_replica(run, expert_replicas[rank]));
    if (!known(own)) found.push_back(own);
  }
  return found;
}

}  // namespace

HeldParameters& HeldParameters::operator+=(const HeldParameters& other) {
  weights += other.weights;
  gradients += other.gradients;
  states += other.states;
  own_gradients += other.own_gradients;
  longest = std::max(longest, other.longest);
  return *this;
}

HeldParameters matrix_held(const Run& run) { return matrix_of(run, shares_of_first(run)); }

HeldParameters held_by_stage(const Run& run, int stage) { return stage_of(run, stage, shares_of_first(run)); }

HeldParameters vocabulary_held(const Run& run) { return vocabulary_of(run, shares_of_first(run)); }

DeviceParameters held_by_device(const Run& run, const std::vector<int>& stages) {
  DeviceParameters fullest;
  for (const OwnShares& own : shares_of_ranks(run)) {
    DeviceParameters held;
    if (run.sharded_vocabulary()) held.vocabulary = vocabulary_of(run, own);
    held.all = held.vocabulary;
    for (const int stage : stages) held.all += stage_of(run, stage, own);
    held.own_masters = own_masters(run, stages, own, held);
    if (held.all.states >= fullest.all.states) fullest = held;
  }
  return fullest;
}

}  // namespace penstock::run
