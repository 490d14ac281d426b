// SPDX-License-Identifier: Apache-2.0
#include "mesh/mesh.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/refusal.h"
#include "base/whole.h"

namespace penstock::mesh {
namespace {

// A group of evenly spaced ranks.
struct Row {
  std::int64_t first, stride, count;
};

Row row_of(const Mesh& mesh, Group group, std::int64_t rank) {
  const std::int64_t t = mesh.tensor, c = mesh.context, e = mesh.expert, stage = mesh.ranks_per_stage();
  const std::int64_t in_stage = rank % stage, of_stage = rank - in_stage;
  switch (group) {
    case Group::Pipeline:
      return {in_stage, stage, mesh.pipeline};
    case Group::Tensor:
      return {rank - rank % t, 1, t};
    case Group::Context:
      return {rank - rank % (t * c) + rank % t, t, c};
    case Group::Replica:
      return {of_stage + rank % t, t, mesh.replicas()};
    case Group::Expert:
      return {of_stage + in_stage / e * e, 1, e};
    case Group::ExpertReplica:
      return {of_stage + in_stage % e, e, stage / e};
    default:
      return {0, 1, mesh.world()};
  }
}

}  // namespace

Coordinates Mesh::coordinates_of(std::int64_t rank) const {
  PENSTOCK_CHECK(rank >= 0 && rank < world(), "a rank is of the world");
  Coordinates at;
  at.tensor = static_cast<int>(rank % tensor);
  at.context = static_cast<int>(rank / tensor % context);
  at.data = static_cast<int>(rank / tensor / context % data);
  at.pipeline = static_cast<int>(rank / ranks_per_stage());
  return at;
}

std::int64_t Mesh::rank_of(const Coordinates& at) const {
  return ((std::int64_t{at.pipeline} * data + at.data) * context + at.context) * tensor + at.tensor;
}

std::string print_mesh(const Mesh& mesh) {
  std::string text = "t" + std::to_string(mesh.tensor);
  if (mesh.context > 1) text += " c" + std::to_string(mesh.context);
  if (mesh.expert > 1) text += " e" + std::to_string(mesh.expert);
  return text + " p" + std::to_string(mesh.pipeline) + " d" + std::to_string(mesh.data);
}

std::string print_place(const Mesh& mesh, std::int64_t rank) {
  const Coordinates at = mesh.coordinates_of(rank);
  std::string text;
  const auto add = [&](char axis, int size, int index) {
    if (size > 1) text += (text.empty() ? "" : " ") + std::string(1, axis) + std::to_string(index);
  };
  add('t', mesh.tensor, at.tensor);
  add('c', mesh.context, at.context);
  add('d', mesh.data, at.data);
  add('p', mesh.pipeline, at.pipeline);
  return text;
}

void validate(const Mesh& mesh) {
  const std::int64_t world =
      product_within(kMostRanks, {mesh.tensor, mesh.context, mesh.data, mesh.pipeline});
  require(world <= kMostRanks, "parallel.tp·cp·dp·pp is more than " + std::to_string(kMostRanks) + " ranks");
  const std::int64_t whole = mesh.ranks_per_stage();
  if (whole % mesh.expert == 0) return;
  throw InputError("parallel.ep = " + std::to_string(mesh.expert) + " does not divide tp·cp·dp = " +
                   std::to_string(whole) + "; use " + divisors_near(mesh.expert, whole));
}

std::vector<std::int64_t> members(const Mesh& mesh, Group group, std::int64_t rank) {
  std::vector<std::int64_t> ranks;
  if (group == Group::Vocabulary) {
    const Row tensor = row_of(mesh, Group::Tensor, rank % mesh.ranks_per_stage());
    for (int stage = 0; stage < mesh.pipeline; ++stage) {
      for (std::int64_t i = 0; i < tensor.count; ++i)
        ranks.push_back(stage * mesh.ranks_per_stage() + tensor.first + i);
    }
    return ranks;
  }
  const Row row = row_of(mesh, group, rank);
  for (std::int64_t i = 0; i < row.count; ++i) ranks.push_back(row.first + i * row.stride);
  return ranks;
}

std::int64_t size(const Mesh& mesh, Group group) {
  return group == Group::Vocabulary ? std::int64_t{mesh.tensor} * mesh.pipeline
                                    : row_of(mesh, group, 0).count;
}

std::int64_t position(const Mesh& mesh, Group group, std::int64_t rank) {
  if (group == Group::Vocabulary) return rank / mesh.ranks_per_stage() * mesh.tensor + rank % mesh.tensor;
  const Row row = row_of(mesh, group, rank);
  return (rank - row.first) / row.stride;
}

std::int64_t replica_of(const Mesh& mesh, const Coordinates& at) {
  return std::int64_t{at.context} * mesh.data + at.data;
}

std::int64_t expert_replica_of(const Mesh& mesh, const Coordinates& at) {
  const auto place = [&](const Coordinates& rank) {
    return rank.tensor * mesh.replicas() + replica_of(mesh, rank);
  };
  const std::vector<std::int64_t> ranks = members(mesh, Group::ExpertReplica, mesh.rank_of(at));
  return std::ranges::count_if(
      ranks, [&](std::int64_t rank) { return place(mesh.coordinates_of(rank)) < place(at); });
}

std::vector<std::int64_t> expert_replicas_of_stage(const Mesh& mesh) {
  std::vector<std::int64_t> replicas(static_cast<std::size_t>(mesh.ranks_per_stage()));
  std::vector<std::int64_t> counted(static_cast<std::size_t>(mesh.expert));  // per expert rank
  for (int tensor = 0; tensor < mesh.tensor; ++tensor) {
    for (int context = 0; context < mesh.context; ++context) {
      for (int data = 0; data < mesh.data; ++data) {
        const std::int64_t rank = mesh.rank_of({.tensor = tensor, .context = context, .data = data});
        replicas[static_cast<std::size_t>(rank)] = counted[static_cast<std::size_t>(rank % mesh.expert)]++;
      }
    }
  }
  return replicas;
}

namespace {

// The slower of two groups; the first if equal.
NodeSpread thinner(const NodeSpread& one, const NodeSpread& other) {
  if (other.one_node) return one;
  return one.one_node || other.least_members < one.least_members ? other : one;
}

// Members of a group, counted node by node.
struct NodeCount {
  std::int64_t node = -1;  // the last member's node
  int members = 0;
  int nodes = 0;
  int here = 0;
  int least = std::numeric_limits<int>::max();  // among the previous nodes

  void add(std::int64_t of_member) {
    if (of_member != node) {
      if (nodes > 0) least = std::min(least, here);
      node = of_member;
      here = 0;
      ++nodes;
    }
    ++here;
    ++members;
  }
  NodeSpread spread() const { return {members, nodes == 1, nodes, std::min(least, here)}; }
};

// The worst spread of groups that are the same in every stage. `group_of_rank`: per rank of a stage.
NodeSpread thinnest_of(const Mesh& mesh, const std::vector<std::int64_t>& group_of_rank,
                       std::int64_t ranks_per_node) {
  const auto groups = static_cast<std::size_t>(std::ranges::max(group_of_rank) + 1);
  std::optional<NodeSpread> worst;
  for (std::int64_t stage = 0; stage < mesh.pipeline; ++stage) {
    std::int64_t rank = stage * mesh.ranks_per_stage() % ranks_per_node;
    if (stage > 0 && rank == 0) break;  // aligned to nodes as stage 0, so spreads repeat
    std::vector<NodeCount> counts(groups);
    for (const std::int64_t group : group_of_rank)
      counts[static_cast<std::size_t>(group)].add(node_of(rank++, ranks_per_node));
    for (const NodeCount& count : counts) worst = worst ? thinner(*worst, count.spread()) : count.spread();
  }
  return *worst;
}

// `replicas`: per rank of a stage, its replica index. `kinds`: number of distinct weight sets, which cycle in
// rank order.
ShardingSpread state_sharding_of(const Mesh& mesh, const std::vector<std::int64_t>& replicas,
                                 std::int64_t kinds, int shards, std::int64_t ranks_per_node) {
  std::vector<std::int64_t> sharding, copying;
  for (std::int64_t rank = 0; rank < mesh.ranks_per_stage(); ++rank) {
    const std::int64_t kind = rank % kinds, replica = replicas[static_cast<std::size_t>(rank)];
    sharding.push_back(replica / shards * kinds + kind);
    copying.push_back(replica % shards * kinds + kind);
  }
  return {thinnest_of(mesh, sharding, ranks_per_node), thinnest_of(mesh, copying, ranks_per_node)};
}

}  // namespace

NodeSpread node_spread(std::int64_t first, std::int64_t stride, int members, std::int64_t ranks_per_node) {
  const std::int64_t last = first + stride * (members - 1);
  const std::int64_t first_node = node_of(first, ranks_per_node), last_node = node_of(last, ranks_per_node);
  NodeSpread spread{.members = members, .one_node = first_node == last_node};
  if (spread.one_node) {
    spread.least_members = members;
    return spread;
  }
  if (stride >= ranks_per_node) {
    spread.nodes = members;
    return spread;
  }
  spread.nodes = static_cast<int>(last_node - first_node + 1);
  const auto before = [&](std::int64_t node) { return ceil_div(node * ranks_per_node - first, stride); };
  std::int64_t least = std::min(before(first_node + 1), members - before(last_node));
  // Counts on the nodes in between repeat, and are equal if the stride divides the node size.
  const std::int64_t different = ranks_per_node % stride == 0 ? 1 : stride;
  const std::int64_t end = std::min(last_node, first_node + 1 + different);
  for (std::int64_t node = first_node + 1; node < end; ++node)
    least = std::min(least, before(node + 1) - before(node));
  spread.least_members = static_cast<int>(least);
  return spread;
}

NodeSpread thinnest(std::int64_t width, std::int64_t blocks, std::int64_t stride, int members,
                    std::int64_t ranks_per_node) {
  NodeSpread worst = node_spread(0, stride, members, ranks_per_node);
  // Starts repeat modulo the node size; if the stride divides it, interleaved groups have the same spread.
  const std::int64_t different = std::min(blocks, ranks_per_node / std::gcd(width, ranks_per_node));
  const std::int64_t offsets = ranks_per_node % stride == 0 ? 1 : std::min(stride, ranks_per_node);
  for (std::int64_t i = 1; i < different * offsets; ++i) {
    if (members == 1 || (!worst.one_node && worst.least_members == 1)) break;
    const std::int64_t first = i / offsets * width + i % offsets;
    worst = thinner(worst, node_spread(first, stride, members, ranks_per_node));
  }
  return worst;
}

NodeSpread thinnest(const Mesh& mesh, Group group, std::int64_t ranks_per_node) {
  PENSTOCK_CHECK(group != Group::Vocabulary, "a vocabulary group is not evenly spaced");
  const Row row = row_of(mesh, group, 0);
  const std::int64_t width = row.stride * row.count;
  return thinnest(width, mesh.world() / width, row.stride, static_cast<int>(row.count), ranks_per_node);
}

NodeSpread thinnest_shards(const Mesh& mesh, int shards, std::int64_t ranks_per_node) {
  const std::int64_t width = std::int64_t{mesh.tensor} * shards;
  return thinnest(width, mesh.world() / width, mesh.tensor, shards, ranks_per_node);
}

ShardingSpread thinnest_sharding(const Mesh& mesh, int shards, std::int64_t ranks_per_node) {
  std::vector<std::int64_t> replicas;
  for (std::int64_t rank = 0; rank < mesh.ranks_per_stage(); ++rank)
    replicas.push_back(replica_of(mesh, mesh.coordinates_of(rank)));
  return state_sharding_of(mesh, replicas, mesh.tensor, shards, ranks_per_node);
}

ShardingSpread thinnest_expert_sharding(const Mesh& mesh, int shards, std::int64_t ranks_per_node) {
  return state_sharding_of(mesh, expert_replicas_of_stage(mesh), mesh.expert, shards, ranks_per_node);
}

}  // namespace penstock::mesh
