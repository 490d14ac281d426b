// SPDX-License-Identifier: Apache-2.0
#include "report/mesh/mesh_picture.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/columns.h"
#include "base/text.h"
#include "report/html_json.h"
#include "report/mesh/mesh_grid.h"

namespace penstock::report {
namespace {

using mesh::Axis;
using mesh::Mesh;

constexpr const char* kRule = "─";
constexpr const char* kNodeBar = "┃";

int size_of(const Mesh& mesh, Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return mesh.tensor;
    case Axis::Context:
      return mesh.context;
    case Axis::Data:
      return mesh.data;
    case Axis::Pipeline:
      return mesh.pipeline;
    default:
      return mesh.expert;
  }
}

std::string long_name(Axis axis, int index) {
  return std::string(name_of(axis)) + ' ' + std::to_string(index);
}
std::string short_name(Axis axis, int index) { return name_of(axis).front() + std::to_string(index); }
std::string left_out_text(const MeshIndex& index) { return "+" + with_commas(index.left_out); }

constexpr std::size_t kMostWidth = 112;  // characters per line, approximately

MeshGridLimits printed_limits(const Mesh& mesh) {
  const std::size_t digits = std::to_string(mesh.world() - 1).size();
  return {.columns = static_cast<int>((kMostWidth - 20) / (digits + 3))};
}

// Places the cells of the columns and writes the lines of the table.
class TextTable {
 public:
  explicit TextTable(const MeshPicture& picture)
      : picture_(picture), grid_(mesh_grid(picture.mesh, printed_limits(picture.mesh))) {
    for (const MeshIndex& row : grid_.rows) left_ = std::max(left_, row_name(row).size());
    std::size_t x = left_ + 3;
    for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
      if (i > 0) x += gap_before(i);
      starts_.push_back(x);
      x += width_of(grid_.columns[i]);
    }
    end_ = x;
  }

  std::string write() const {
    std::string text;
    for (std::size_t level = 0; level < grid_.levels.size(); ++level) text += header(level);
    for (const MeshIndex& row : grid_.rows) text += row.left_out > 0 ? row_name(row) + "\n" : line(row.index);
    return text;
  }

 private:
  static std::string row_name(const MeshIndex& row) {
    return row.left_out > 0 ? "... " + with_commas(row.left_out) + " more"
                            : long_name(Axis::Pipeline, row.index);
  }

  std::size_t innermost() const { return grid_.levels.size() - 1; }

  std::size_t width_of(const MeshColumn& column) const {
    if (column.left_out()) return std::max<std::size_t>(3, left_out_text(column.path.back()).size());
    const std::size_t digits = std::to_string(picture_.mesh.world() - 1).size();
    return std::max(digits, short_name(grid_.levels.back(), column.path.back().index).size());
  }

  // Odd, so that the bar of a node is in the middle.
  std::size_t gap_before(std::size_t column) const {
    const std::size_t least = picture_.ranks_per_node > 0 || innermost() > 0 ? 3 : 2;
    return least + 2 * (innermost() - level_of_change(grid_, column));
  }

  std::size_t end_of(std::size_t column) const { return starts_[column] + width_of(grid_.columns[column]); }

  bool has_long_names(std::size_t level) const {
    if (level == innermost()) return false;
    for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
      const auto& path = grid_.columns[i].path;
      if (path.size() <= level || path[level].left_out > 0 || !begins(i, level)) continue;
      if (long_name(grid_.levels[level], path[level].index).size() > end_of(last_of(i, level)) - starts_[i])
        return false;
    }
    return true;
  }

  bool begins(std::size_t column, std::size_t level) const {
    return grid_.columns[column].path.size() > level &&
           (column == 0 || level_of_change(grid_, column) <= level);
  }

  // The last column that agrees with this one up to the level.
  std::size_t last_of(std::size_t column, std::size_t level) const {
    std::size_t last = column;
    while (last + 1 < grid_.columns.size() && level_of_change(grid_, last + 1) > level) ++last;
    return last;
  }

  std::string header(std::size_t level) const {
    const bool spelt = has_long_names(level);
    std::string text;
    for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
      if (!begins(i, level)) continue;
      const MeshIndex& index = grid_.columns[i].path[level];
      const Axis axis = grid_.levels[level];
      const std::size_t end = end_of(last_of(i, level));
      if (level == innermost() && index.left_out == 0) {
        text =
            left_aligned(text, starts_[i]) + right_aligned(short_name(axis, index.index), end - starts_[i]);
        continue;
      }
      std::string name = spelt ? long_name(axis, index.index) : short_name(axis, index.index);
      if (index.left_out > 0) name = left_out_text(index);
      text = left_aligned(text, starts_[i]) + name;
      std::size_t at = starts_[i] + name.size();
      if (at + 2 > end) continue;
      text += ' ';
      for (++at; at < end; ++at) text += kRule;
    }
    return text + "\n";
  }

  std::string line(int row) const {
    const std::int64_t first = row * picture_.mesh.ranks_per_stage();
    std::string text = long_name(Axis::Pipeline, row);
    for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
      const MeshColumn& column = grid_.columns[i];
      const std::int64_t rank = first + column.first;
      if (i > 0 && is_other_node(rank)) {
        const std::size_t gap = gap_before(i);
        text = left_aligned(text, starts_[i] - gap + gap / 2) + kNodeBar;
      }
      text = left_aligned(text, starts_[i]) +
             right_aligned(column.left_out() ? "..." : std::to_string(rank), width_of(column));
    }
    if (picture_.ranks_per_node == 0) return text + "\n";
    return left_aligned(text, end_) + "   " + nodes_of_row(first) + "\n";
  }

  bool is_other_node(std::int64_t rank) const {
    const std::int64_t size = picture_.ranks_per_node;
    return size > 0 && mesh::node_of(rank, size) != mesh::node_of(rank - 1, size);
  }

  std::string nodes_of_row(std::int64_t first) const {
    const std::int64_t from = mesh::node_of(first, picture_.ranks_per_node);
    const std::int64_t to =
        mesh::node_of(first + picture_.mesh.ranks_per_stage() - 1, picture_.ranks_per_node);
    if (from == to) return "node " + std::to_string(from);
    return "nodes " + std::to_string(from) + "-" + std::to_string(to);
  }

  const MeshPicture& picture_;
  MeshGrid grid_;
  std::size_t left_ = 0, end_ = 0;
  std::vector<std::size_t> starts_;  // per column, in characters
};

std::string group_table(const MeshPicture& picture) {
  const bool nodes = picture.ranks_per_node > 0;
  Rows rows{{"group", "ranks", "groups", "nodes", "the first groups", "its ranks share"}};
  for (const GroupFacts& facts : group_facts(picture.mesh, picture.ranks_per_node)) {
    rows.push_back({std::string(name_of(facts.kind)), with_commas(facts.size), with_commas(facts.groups),
                    with_commas(facts.most_nodes), facts.first, std::string(meaning_of(facts.kind))});
  }
  if (nodes) return columns(rows, "lrrrl");
  for (auto& row : rows) row.erase(row.begin() + 3);
  return columns(rows, "lrrl");
}

std::string rank_json(const MeshPicture& picture, std::int64_t rank) {
  const mesh::Coordinates at = picture.mesh.coordinates_of(rank);
  JsonObject object;
  object.add("rank", std::to_string(rank)).add("pipeline", std::to_string(at.pipeline));
  object.add("data", std::to_string(at.data)).add("context", std::to_string(at.context));
  object.add("tensor", std::to_string(at.tensor));
  if (picture.ranks_per_node > 0)
    object.add("node", std::to_string(mesh::node_of(rank, picture.ranks_per_node)));
  return object.text();
}

std::string mesh_groups_json(const Mesh& mesh, mesh::Group kind) {
  JsonList groups;
  for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
    if (mesh::position(mesh, kind, rank) != 0) continue;
    JsonList ranks;
    for (const std::int64_t member : members(mesh, kind, rank)) ranks.add(std::to_string(member));
    groups.add(ranks.text());
  }
  return groups.text();
}

}  // namespace

std::string mesh_title(const MeshPicture& picture) {
  const Mesh& mesh = picture.mesh;
  std::string text = with_commas(mesh.world()) + (mesh.world() == 1 ? " rank" : " ranks");
  const char* separator = ": ";
  for (const Axis axis : {Axis::Pipeline, Axis::Data, Axis::Context, Axis::Tensor, Axis::Expert}) {
    if (size_of(mesh, axis) == 1) continue;
    text += std::exchange(separator, ", ") + std::string(name_of(axis)) + ' ' +
            std::to_string(size_of(mesh, axis));
  }
  if (picture.ranks_per_node == 0) return text;
  const std::int64_t nodes = mesh::node_of(mesh.world() - 1, picture.ranks_per_node) + 1;
  return text + "; " + with_commas(nodes) + (nodes == 1 ? " node of " : " nodes of ") +
         with_commas(picture.ranks_per_node);
}

std::string mesh_formula(const Mesh& mesh) {
  std::string text = "pipeline";
  for (const Axis axis : {Axis::Data, Axis::Context, Axis::Tensor}) {
    const int size = size_of(mesh, axis);
    if (size == 1) continue;
    if (text != "pipeline") text = "(" + text + ")";
    text += " · " + std::to_string(size) + " + " + std::string(name_of(axis));
  }
  return "rank = " + text;
}

std::string mesh_text(const MeshPicture& picture) {
  return mesh_title(picture) + "\n" + mesh_formula(picture.mesh) + "\n\n" + TextTable(picture).write() +
         "\n" + group_table(picture);
}

std::string mesh_json(const MeshPicture& picture) {
  const Mesh& mesh = picture.mesh;
  JsonObject sizes, groups;
  for (const Axis axis : {Axis::Pipeline, Axis::Data, Axis::Context, Axis::Tensor, Axis::Expert})
    sizes.add(name_of(axis), std::to_string(size_of(mesh, axis)));
  for (const GroupFacts& facts : group_facts(mesh, 0))
    groups.add(name_of(facts.kind), mesh_groups_json(mesh, facts.kind));
  JsonList ranks;
  for (std::int64_t rank = 0; rank < mesh.world(); ++rank) ranks.add(rank_json(picture, rank));
  JsonObject object;
  object.add("sizes", sizes.text()).add("world", std::to_string(mesh.world()));
  object.add("ranks_per_node", picture.ranks_per_node > 0 ? std::to_string(picture.ranks_per_node) : "null");
  return object.add("ranks", ranks.text()).add("groups", groups.text()).text() + "\n";
}

}  // namespace penstock::report
