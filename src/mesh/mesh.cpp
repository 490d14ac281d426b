// SPDX-License-Identifier: Apache-2.0
#include "mesh/mesh.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/refusal.h"
#include "base/whole.h"

namespace penstock::mesh {
namespace {

// Groups of evenly spaced ranks: first rank of a rank's group, and the stride between members.
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
  std::vector<std::int64_t> counted(static_cast<std::size_t>(mesh.expert));  // of each expert rank
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
  const std::int64_t in_first = ceil_div((first_node + 1) * ranks_per_node - first, stride);
  const std::int64_t in_last = (last - last_node * ranks_per_node) / stride + 1;
  std::int64_t least = std::min(in_first, in_last);
  if (spread.nodes > 2) least = std::min(least, ranks_per_node / stride);
  spread.least_members = static_cast<int>(std::max<std::int64_t>(1, least));
  return spread;
}

NodeSpread thinnest(std::int64_t width, std::int64_t starts, std::int64_t stride, int members,
                    std::int64_t ranks_per_node) {
  NodeSpread worst = node_spread(0, stride, members, ranks_per_node);
  const std::int64_t different = std::min(starts, ranks_per_node);  // starts repeat modulo the node size
  for (std::int64_t i = 1; i < different && width % ranks_per_node != 0; ++i) {
    const NodeSpread here = node_spread(i * width, stride, members, ranks_per_node);
    const bool thinner =
        worst.one_node ? !here.one_node : !here.one_node && here.least_members < worst.least_members;
    if (thinner) worst = here;
  }
  return worst;
}

NodeSpread thinnest(const Mesh& mesh, Group group, std::int64_t ranks_per_node) {
  PENSTOCK_CHECK(group != Group::Vocabulary, "a vocabulary group is not evenly spaced");
  const Row row = row_of(mesh, group, 0);
  const bool crosses =
      group == Group::Pipeline || group == Group::ExpertReplica;  // ranks of other groups lie in between
  const std::int64_t width = crosses ? 1 : row.stride * row.count;
  const std::int64_t starts = crosses ? row.stride : mesh.world() / width;
  return thinnest(width, starts, row.stride, static_cast<int>(row.count), ranks_per_node);
}

NodeSpread thinnest_shards(const Mesh& mesh, int shards, std::int64_t ranks_per_node) {
  const std::int64_t width = std::int64_t{mesh.tensor} * shards;
  return thinnest(width, mesh.world() / width, mesh.tensor, shards, ranks_per_node);
}

}  // namespace penstock::mesh
