// SPDX-License-Identifier: Apache-2.0
#include "plan/replica_cost.h"

#include <algorithm>
#include <cmath>

#include "sim/costs/collectives.h"
#include "sim/costs/kernel_cost.h"

namespace penstock::plan {
namespace {

// Experts are counted separately, since fewer ranks hold the same ones.
struct Parameters {
  double dense_layers = 0, vocabulary = 0, experts = 0;
  double dense() const { return dense_layers + vocabulary; }
  double total() const { return dense() + experts; }
};

// Of a device with so many layers and matrices of V·h.
Parameters parameters_of(const LayoutCase& c, double layers, double matrices) {
  const auto& shape = c.shape();
  const double mlp = layers * as_double(c.workload.model.mlp_matrices() * shape.hidden * shape.ffn);
  const double attention = as_double(model::attention_parameters(c.held()) + model::router_parameters(shape));
  const double shared = as_double(model::shared_expert_parameters(shape)) * c.t();  // not split
  Parameters parameters;
  parameters.dense_layers = layers * (attention + shared) / c.t();
  parameters.vocabulary = c.vocab() * as_double(shape.hidden) * matrices / c.t();
  if (shape.experts == 1) {
    parameters.dense_layers += mlp / c.t();
  } else {
    const double held = as_double(shape.experts) / c.layout.mesh.expert;
    parameters.experts = mlp * held / (c.engine.folded_experts ? 1.0 : c.t());
  }
  return parameters;
}

// Of the heaviest device; if not exact, of one with the most layers and with one matrix of V·h.
Parameters local_parameters(const LayoutCase& c) {
  const auto layers = [&](int rank) { return as_double(device_layers(c.workload, c.layout, rank)); };
  const int fullest = fullest_rank(c.workload, c.layout), last = last_device(c.layout);
  if (!c.engine.exact)
    return parameters_of(c, std::max(layers(fullest), layers(last)),
                         c.layout.vocabulary_parallel ? 1 / c.p() : 1.0);
  Parameters most;
  for (const int rank : {0, fullest, last}) {
    const Parameters held = parameters_of(c, layers(rank), embeddings_on(c.workload, c.layout, rank));
    if (held.total() > most.total()) most = held;
  }
  return most;
}

// Ranks that hold the same experts: over the stage, or for one tensor rank if tensor ranks split experts.
mesh::NodeSpread expert_replicas(const LayoutCase& c) {
  const mesh::Mesh& mesh = c.layout.mesh;
  if (c.engine.folded_experts) return mesh::thinnest(mesh, mesh::Group::ExpertReplica, c.hardware.node.gpus);
  const auto members = static_cast<int>(std::max<std::int64_t>(1, mesh.replicas() / mesh.expert));
  return mesh::thinnest(mesh.ranks_per_stage(), mesh.pipeline, std::int64_t{mesh.tensor} * mesh.expert,
                        members, c.hardware.node.gpus);
}

// Ranks that shard one set of dense states: neighbouring replicas.
mesh::NodeSpread shard_group(const LayoutCase& c) {
  const mesh::Mesh& mesh = c.layout.mesh;
  const std::int64_t node = c.hardware.node.gpus, group = c.layout.sharded.group;
  if (group == 0 || group >= mesh.replicas()) return mesh::thinnest(mesh, mesh::Group::Replica, node);
  return mesh::thinnest_shards(mesh, static_cast<int>(group), node);
}

// Ranks that shard one set of an expert's states, among the ranks that hold the expert. There are as many
// sets as for the dense states.
mesh::NodeSpread shards_of_experts(const LayoutCase& c) {
  const mesh::Mesh& mesh = c.layout.mesh;
  const std::int64_t group = c.layout.sharded.group;
  if (group == 1) return {};
  const mesh::NodeSpread all = expert_replicas(c);
  if (group == 0 || group >= mesh.replicas()) return all;
  const auto members = static_cast<int>(std::max<std::int64_t>(1, all.members * group / mesh.replicas()));
  const std::int64_t apart = std::int64_t{mesh.expert} * (c.engine.folded_experts ? 1 : mesh.tensor);
  const std::int64_t width = apart * members;
  return mesh::thinnest(width, mesh.world() / width, apart, members, c.hardware.node.gpus);
}

// Traffic of `count` sharded parameters, one collective per layer: gathers weights and reduce-scatters
// gradients within `group`, then all-reduces these between the groups in `all`.
Seconds sharding_of_step(const LayoutCase& c, const mesh::NodeSpread& group, const mesh::NodeSpread& all,
                         double count) {
  const ShardedWeights& sharded = c.layout.sharded;
  const double sums = c.engine.gradients_once ? 1 : c.m();
  const double gathers = sharded.stays ? 1 : (sharded.regathers ? 2 : 1) * c.m();
  const double gradients = count * sums * c.engine.gradient_bytes;
  const Seconds start = 1e-6 * c.hardware.network.latency_us * std::log2(group.members);
  Seconds traffic = ring_pass(c.hardware, group, count * gathers * c.number_bytes() + gradients) +
                    (gathers + sums) * as_double(c.shape().layers) * start;
  if (all.members > group.members)
    traffic += ring_pass(c.hardware, all, 2 * gradients / group.members, sim::Payload::Gradients);
  return traffic;
}

// Tied embeddings on two stages: an all-reduce of their gradient between the two. If exact, ranks send
// the shares whose states they have, both ways at once, and a device with both ends sends nothing.
Seconds tied_sum(const LayoutCase& c) {
  if (!c.shape().tied_embeddings || c.p() == 1 || c.layout.vocabulary_parallel) return 0;
  const double bytes = 4.0 * c.vocab() * as_double(c.shape().hidden) / c.t();
  if (!c.engine.exact) return 2 * stage_transfer(c.hardware, c.layout.mesh, bytes);
  if (last_device(c.layout) == 0) return 0;
  return stage_transfer(c.hardware, c.layout.mesh, bytes / shard_group(c).members);
}

// Ring passes over what each parameter has of `bytes`, experts over those that hold the same ones.
Seconds over_replicas(const LayoutCase& c, double dense, double experts, double bytes) {
  const mesh::NodeSpread group = mesh::thinnest(c.layout.mesh, mesh::Group::Replica, c.hardware.node.gpus);
  Seconds seconds = ring_pass(c.hardware, group, dense * bytes, sim::Payload::Gradients);
  if (experts > 0)
    seconds += ring_pass(c.hardware, expert_replicas(c), experts * bytes, sim::Payload::Gradients);
  return seconds;
}

// The part of the chunks' passes, one each, that does not overlap compute. On the first device, which begins
// first and ends last, the weights of a chunk are gathered while a turn of the chunk before it runs forward,
// and its gradients are summed while a turn of the chunk before it runs backward; one pass, here with the
// vocabulary's, has nothing beside it. A V's two chunks begin and end at about the same time. `slot`: of one
// slice-chunk.
Seconds exposed_passes(const LayoutCase& c, const Parameters& count, double bytes, Seconds slot) {
  if (bytes == 0) return 0;
  const double chunks = is_v_shaped(c.layout.schedule) ? 1 : c.layout.chunks;
  const double dense = count.dense_layers / chunks, experts = count.experts / chunks;
  const int turn = slices_of_turn(c.layout.schedule, pipeline_shape(c.workload, c.layout));
  const Seconds beside = std::max(turn, c.layout.mesh.pipeline) * slot;
  return over_replicas(c, dense + count.vocabulary, experts, bytes) +
         (chunks - 1) * std::max(0.0, over_replicas(c, dense, experts, bytes) - beside);
}

}  // namespace

// Gathers of weights and reductions of their gradients. Experts held by as many ranks as the dense weights
// share the collectives of those. The first gather and the last reduction are exposed.
Seconds shared_weights_of_step(const LayoutCase& c, Seconds compute) {
  constexpr double kHidden = 0.9;  // fraction of the compute that can hide traffic
  const Parameters count = local_parameters(c);
  const mesh::NodeSpread dense = shard_group(c), experts = shards_of_experts(c);
  const mesh::NodeSpread all = mesh::thinnest(c.layout.mesh, mesh::Group::Replica, c.hardware.node.gpus);
  const mesh::NodeSpread all_experts = expert_replicas(c);
  const bool apart =
      count.experts > 0 && (experts.members != dense.members || all_experts.members != all.members);
  Seconds traffic = sharding_of_step(c, dense, all, apart ? count.dense() : count.total());
  if (apart) traffic += sharding_of_step(c, experts, all_experts, count.experts);
  const double exposed = c.engine.gradient_exposed;
  return exposed * traffic + std::max(0.0, (1 - exposed) * traffic - kHidden * compute);
}

// Sharded: a reduce-scatter of the gradients and an all-gather of the weights. Replicated: an all-reduce.
Seconds gradients_of_step(const LayoutCase& c, Seconds forward, Seconds backward) {
  if (c.engine.gradient_overlap) return tied_sum(c);
  const Parameters count = local_parameters(c);
  const bool shards = c.engine.shards_optimizer && c.layout.sharded.group != 1;
  const double sums = (shards ? 1 : 2) * c.engine.gradient_bytes, gathers = shards ? c.number_bytes() : 0;
  const Seconds seconds =
      c.engine.exact ? exposed_passes(c, count, sums, backward) + exposed_passes(c, count, gathers, forward)
                     : over_replicas(c, count.dense(), count.experts, sums + gathers);
  return c.engine.gradient_exposed * seconds + tied_sum(c);
}

Seconds optimizer_of_step(const LayoutCase& c) {
  const Parameters count = local_parameters(c);
  const auto traffic = [&](double parameters, const mesh::NodeSpread& group) {
    const double shards = c.engine.shards_optimizer ? group.members : 1.0;
    const double passes = c.layout.sharded.on ? c.engine.gradient_passes / shards : c.engine.gradient_passes;
    return parameters * (passes + c.engine.optimizer_bytes / shards);
  };
  return optimizer_passes(
      c.hardware, traffic(count.dense(), shard_group(c)) + traffic(count.experts, shards_of_experts(c)));
}

}  // namespace penstock::plan
