// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/layer_traffic.h"

#include <cmath>

#include "model/memory/context_traffic.h"
#include "sim/costs/collectives.h"

namespace penstock::sim {
namespace {

constexpr double kAccumulatorBytes = 4;

double tensor_exposed(const Site& site) {
  return site.engine.tensor_exposed *
         (site.engine.tensor_overlap ? site.hardware.efficiency.tensor_exposed : 1.0);
}

mesh::NodeSpread tensor_group(const Site& site) {
  return mesh::thinnest(site.slice.mesh, mesh::Group::Tensor, site.hardware.node.gpus);
}

Seconds hidden_pass_of(const Site& site, double bytes) {
  if (site.t == 1) return 0;
  return tensor_exposed(site) * ring_pass(site.hardware, tensor_group(site), bytes);
}

// Keys and values go to all ranks once in the forward and once in the backward, which also returns their
// gradients. This traffic hides behind the QKV product unless queries share heads, as in the ATC'24 engine.
ContextTraffic ring_traffic(const Site& site) {
  const mesh::Mesh& mesh = site.slice.mesh;
  const mesh::NodeSpread group = mesh::thinnest(mesh, mesh::Group::Context, site.hardware.node.gpus);
  const double all_tokens = site.hardware.number_bytes() * site.tokens * mesh.context / site.t;
  const double exposed = site.slice.shape.kv_heads == site.shape().heads ? tensor_exposed(site) : 1.0;
  const Seconds pass =
      exposed * ring_pass(site.hardware, group, (site.slice.earlier + 1) * all_tokens * 2 * site.keys());
  return {pass, 2 * pass, pass};
}

// `members` ranks of a context group that are `apart` of its ranks apart.
mesh::NodeSpread context_spread(const Site& site, std::int64_t apart, std::int64_t members) {
  const mesh::Mesh& mesh = site.slice.mesh;
  const std::int64_t stride = apart * mesh.tensor, width = stride * members;
  return mesh::thinnest(width, mesh.world() / width, stride, static_cast<int>(members),
                        site.hardware.node.gpus);
}

// The time of all collectives of a pass: each has its latency; their bytes are summed.
Seconds context_pass(const Site& site, const model::ContextPass& pass, const model::ContextSplit& split) {
  Seconds sum = 0;
  if (pass.exchanges > 0) {
    const mesh::NodeSpread group = context_spread(site, 1, split.heads);
    const double sent = pass.exchanged * group.members / (group.members - 1);
    sum +=
        all_to_all(site.hardware, group, sent) + (pass.exchanges - 1) * all_to_all(site.hardware, group, 0);
  }
  if (pass.gathers > 0) {
    const mesh::NodeSpread group = context_spread(site, split.heads, split.token_ranks());
    const double whole = pass.gathered * group.members / (group.members - 1);
    sum += ring_pass(site.hardware, group, whole) + (pass.gathers - 1) * ring_pass(site.hardware, group, 0);
  }
  return sum;
}

// Expected number of a group's nodes on which a token has at least one of its experts.
double visited_nodes(double nodes, double experts) { return nodes * (1 - std::pow(1 - 1 / nodes, experts)); }

}  // namespace

Seconds tensor_pass(const Site& site) { return hidden_pass_of(site, site.hidden_bytes()); }

Seconds scatter_pass(const Site& site) {
  const double factor = site.slice.shards > 1 ? kAccumulatorBytes / site.hardware.number_bytes() : 1;
  return hidden_pass_of(site, factor * site.hidden_bytes());
}

ContextTraffic context_traffic(const Site& site) {
  if (site.slice.mesh.context == 1) return {};
  if (!site.engine.context_by_split) return ring_traffic(site);
  model::ContextSplit split = site.slice.context;
  split.ranks = site.slice.mesh.context;
  const model::ContextTraffic moved =
      model::context_traffic(model::shape_of_rank(site.shape(), site.slice.mesh.tensor), split, site.tokens,
                             site.hardware.number_bytes(), kAccumulatorBytes);
  return {context_pass(site, moved.forward, split), context_pass(site, moved.backward, split),
          context_pass(site, moved.again, split)};
}

Seconds expert_traffic(const Site& site) {
  if (!site.has_experts() || site.slice.mesh.expert == 1) return 0;
  const std::int64_t node = site.hardware.node.gpus;
  const mesh::NodeSpread group = site.folds_experts()
                                     ? mesh::thinnest(site.slice.mesh, mesh::Group::Expert, node)
                                     : strided_expert_group(site.slice.mesh, node);
  double copies = as_double(site.shape().experts_per_token);
  if (site.engine.direct_dispatch && !group.one_node) copies = visited_nodes(group.nodes, copies);
  const double bytes = site.own_hidden_bytes() * copies * site.expert_load();
  return 2.0 * site.engine.expert_exposed * all_to_all(site.hardware, group, bytes);
}

}  // namespace penstock::sim
