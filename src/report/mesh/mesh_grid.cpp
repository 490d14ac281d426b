// SPDX-License-Identifier: Apache-2.0
#include "report/mesh/mesh_grid.h"

#include <algorithm>
#include <array>
#include <set>

namespace penstock::report {
namespace {

using mesh::Axis;
using mesh::Group;
using mesh::Mesh;

constexpr std::size_t kListed = 6;      // ranks of a group listed one by one
constexpr std::size_t kListWidth = 30;  // characters after which a list of groups begins no group

struct Level {
  Axis axis;
  int size;
  std::int64_t stride;  // between neighbours, in ranks
};

std::vector<Level> levels_of(const Mesh& mesh) {
  const std::int64_t t = mesh.tensor, c = mesh.context;
  std::vector<Level> levels{
      {Axis::Data, mesh.data, t * c}, {Axis::Context, mesh.context, t}, {Axis::Tensor, mesh.tensor, 1}};
  std::erase_if(levels, [](const Level& level) { return level.size == 1; });
  if (levels.empty()) levels.push_back({Axis::Data, 1, 1});
  return levels;
}

// Shortens outer levels first, since they look alike.
std::vector<int> shown_sizes(const std::vector<Level>& levels, int most) {
  std::vector<int> sizes;
  std::int64_t outer = 1;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    std::int64_t inner = 1;
    for (std::size_t k = l + 1; k < levels.size(); ++k) inner *= levels[k].size;
    const std::int64_t fitting = std::max<std::int64_t>(2, most / (outer * inner));
    sizes.push_back(static_cast<int>(std::min<std::int64_t>(levels[l].size, fitting)));
    outer *= sizes.back();
  }
  return sizes;
}

void add_columns(const std::vector<Level>& levels, const std::vector<int>& sizes, const MeshColumn& above,
                 std::vector<MeshColumn>& columns) {
  const std::size_t l = above.path.size();
  for (const MeshIndex& entry : shown_indices(levels[l].size, sizes[l])) {
    MeshColumn column = above;
    column.path.push_back(entry);
    column.first += entry.index * levels[l].stride;
    if (entry.left_out > 0 || l + 1 == levels.size())
      columns.push_back(column);
    else
      add_columns(levels, sizes, column, columns);
  }
}

std::string list_of(const std::vector<std::int64_t>& ranks) {
  if (ranks.size() > 2 && ranks.back() - ranks.front() + 1 == std::ssize(ranks))
    return std::to_string(ranks.front()) + "-" + std::to_string(ranks.back());
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > kListed && i == kListed - 2) {
      text += " ...";
      i = ranks.size() - 1;
    }
    text += (i > 0 ? " " : "") + std::to_string(ranks[i]);
  }
  return text;
}

std::int64_t nodes_of(const std::vector<std::int64_t>& ranks, std::int64_t ranks_per_node) {
  std::set<std::int64_t> nodes;
  for (const std::int64_t rank : ranks) nodes.insert(mesh::node_of(rank, ranks_per_node));
  return std::ssize(nodes);
}

GroupFacts facts_of(const Mesh& mesh, Group kind, std::int64_t ranks_per_node) {
  GroupFacts facts{.kind = kind, .size = mesh::size(mesh, kind), .first = {}};
  facts.groups = mesh.world() / facts.size;
  std::int64_t listed = 0;
  for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
    const bool lists = facts.first.size() < kListWidth;
    if ((!lists && ranks_per_node == 0) || listed == facts.groups) break;
    if (mesh::position(mesh, kind, rank) != 0) continue;
    const std::vector<std::int64_t> ranks = members(mesh, kind, rank);
    if (ranks_per_node > 0) facts.most_nodes = std::max(facts.most_nodes, nodes_of(ranks, ranks_per_node));
    if (!lists) continue;
    facts.first += (listed++ > 0 ? " | " : "") + list_of(ranks);
  }
  if (listed < facts.groups) facts.first += " | ...";
  return facts;
}

}  // namespace

std::vector<MeshIndex> shown_indices(int size, int most) {
  std::vector<MeshIndex> shown;
  const int first = size <= most + 1 ? size : most - 1;
  for (int i = 0; i < first; ++i) shown.push_back({i});
  if (first == size) return shown;
  shown.push_back({first, size - 1 - first});
  shown.push_back({size - 1});
  return shown;
}

MeshGrid mesh_grid(const Mesh& mesh, const MeshGridLimits& limits) {
  const std::vector<Level> levels = levels_of(mesh);
  MeshGrid grid;
  for (const Level& level : levels) grid.levels.push_back(level.axis);
  add_columns(levels, shown_sizes(levels, limits.columns), {}, grid.columns);
  grid.rows = shown_indices(mesh.pipeline, limits.rows);
  return grid;
}

std::size_t level_of_change(const MeshGrid& grid, std::size_t column) {
  if (column == 0) return 0;
  const auto &before = grid.columns[column - 1].path, &path = grid.columns[column].path;
  std::size_t level = 0;
  while (before[level].index == path[level].index) ++level;
  return level;
}

std::string with_commas(std::int64_t count) {
  std::string text = std::to_string(count);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::vector<GroupFacts> group_facts(const Mesh& mesh, std::int64_t ranks_per_node) {
  constexpr std::array kinds{Group::Tensor,        Group::Context,  Group::Replica,    Group::Expert,
                             Group::ExpertReplica, Group::Pipeline, Group::Vocabulary, Group::World};
  std::vector<GroupFacts> facts;
  for (const Group kind : kinds) facts.push_back(facts_of(mesh, kind, ranks_per_node));
  return facts;
}

std::string_view meaning_of(Group group) {
  switch (group) {
    case Group::Tensor:
      return "heads and ffn columns of a layer";
    case Group::Context:
      return "tokens of a sequence";
    case Group::Replica:
      return "samples; the same dense weights";
    case Group::Expert:
      return "experts of a layer";
    case Group::ExpertReplica:
      return "samples; the same experts";
    case Group::Pipeline:
      return "layers of the model";
    case Group::Vocabulary:
      return "rows of embedding and output matrix";
    default:
      return "the step";
  }
}

}  // namespace penstock::report
