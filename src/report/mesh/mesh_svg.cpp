// SPDX-License-Identifier: Apache-2.0
#include "report/mesh/mesh_svg.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "report/mesh/mesh_grid.h"
#include "report/palette.h"
#include "report/svg_text.h"

namespace penstock::report {
namespace {

using mesh::Axis;

constexpr double kMeshMargin = 14;
constexpr double kMeshCharacter = 6.4;  // maximum width of a character at 11 pixels
constexpr double kLeastRow = 900;       // width of a row of small copies
constexpr double kFrameGap = 18;        // extra gap between rows of different nodes

double label_width(const std::string& text) { return static_cast<double>(text.size()) * kMeshCharacter; }

struct CellSizes {
  double width, height;   // of a cell
  double gap, level_gap;  // between columns, and more for each level above the innermost
  double row_gap;
};

// Positions of the cells of one copy of the table, from its upper left corner.
struct Cells {
  CellSizes size;
  std::vector<double> lefts;  // of the columns
  std::vector<double> tops;   // of the rows
  double right = 0, bottom = 0;

  Cells(const MeshGrid& grid, const CellSizes& sizes) : size(sizes) {
    const std::size_t innermost = grid.levels.size() - 1;
    for (std::size_t i = 0; i < grid.columns.size(); ++i) {
      const auto levels = static_cast<double>(innermost - level_of_change(grid, i));
      if (i > 0) right += size.gap + size.level_gap * levels;
      lefts.push_back(right);
      right += size.width;
    }
    for (std::size_t row = 0; row < grid.rows.size(); ++row) add_row(0);
  }

  void add_row(double above) {
    bottom += above + (tops.empty() ? 0 : size.row_gap);
    tops.push_back(bottom);
    bottom += size.height;
  }
};

// Cells are as wide as the largest rank, and drawn_limits() takes as many as fit.
double cell_width(const mesh::Mesh& mesh) {
  return std::max(28.0, label_width(std::to_string(mesh.world())) + 8);
}
MeshGridLimits drawn_limits(const mesh::Mesh& mesh) {
  return {.columns = static_cast<int>(kLeastRow / (cell_width(mesh) + 4))};
}

class MeshWriter {
 public:
  explicit MeshWriter(const MeshPicture& picture)
      : picture_(picture),
        grid_(mesh_grid(picture.mesh, drawn_limits(picture.mesh))),
        cells_(grid_, {cell_width(picture.mesh), 24, 4, 10, 8}) {
    for (const MeshIndex& row : grid_.rows) left_ = std::max(left_, label_width(row_name(row)));
    left_ += 2 * kMeshMargin;
    top_ = 3 * kMeshMargin + 24 + 18 * static_cast<double>(grid_.levels.size()) + (has_nodes() ? 14 : 0);
    if (!has_nodes()) return;
    cells_.tops.clear();
    cells_.bottom = 0;
    for (std::size_t row = 0; row < grid_.rows.size(); ++row)
      cells_.add_row(row > 0 && !continues_node(row) ? kFrameGap : 0);
  }

  std::string write() {
    text("title", kMeshMargin, kMeshMargin + 12, mesh_title(picture_));
    text("quiet", kMeshMargin, kMeshMargin + 30, mesh_formula(picture_.mesh));
    for (std::size_t level = 0; level < grid_.levels.size(); ++level) write_header(level);
    for (std::size_t row = 0; row < grid_.rows.size(); ++row) write_row(row);
    if (has_nodes()) write_nodes();
    const double bottom = write_groups(top_ + cells_.bottom + 24);
    return head(bottom + kMeshMargin) + svg_ + "</svg>\n";
  }

 private:
  static std::string row_name(const MeshIndex& row) {
    if (row.left_out > 0) return "... " + with_commas(row.left_out) + " more";
    return "pipeline " + std::to_string(row.index);
  }

  std::string head(double height) const {
    const std::string size[] = {pixels(width_ + kMeshMargin), pixels(height)};
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size[0] + "\" height=\"" + size[1] +
           "\" viewBox=\"0 0 " + size[0] + ' ' + size[1] +
           "\" font-family=\"Helvetica, Arial, sans-serif\">\n"
           "<style>\n"
           ":root { color-scheme: light dark }\n"
           "text { font-size: 11px; fill: #222 }\n"
           ".title { font-size: 14px; font-weight: bold }\n"
           ".name { font-weight: bold }\n"
           ".middle { text-anchor: middle }\n"
           ".right { text-anchor: end }\n"
           ".quiet { fill: #666 }\n"
           ".line { stroke: #999; stroke-width: 1; fill: none }\n"
           ".other { fill: #888; fill-opacity: 0.18 }\n"
           "@media (prefers-color-scheme: dark) { text { fill: #ddd } .quiet { fill: #aaa } }\n"
           "</style>\n";
  }

  void text(std::string_view style, double x, double y, const std::string& content) {
    svg_ += "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" class=\"" + std::string(style) + "\">" +
            escape(content) + "</text>\n";
    if (style != "middle" && style != "right")
      width_ = std::max(width_, x + label_width(content) * (style == "title" ? 1.2 : 1));
  }

  // `fill` is a class, or a colour with an opacity.
  void rectangle(const std::string& fill, double x, double y, double width, double height, double radius,
                 const std::string& hint = {}) {
    svg_ += "<rect " + fill + " x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" width=\"" + pixels(width) +
            "\" height=\"" + pixels(height) + "\" rx=\"" + pixels(radius) + "\"" +
            (hint.empty() ? "/>\n" : "><title>" + escape(hint) + "</title></rect>\n");
    width_ = std::max(width_, x + width);
  }

  // Draws the name of each group of columns, and below it a line of the width of the group.
  void write_header(std::size_t level) {
    const double y =
        top_ - (has_nodes() ? 22 : 8) - 18 * static_cast<double>(grid_.levels.size() - 1 - level);
    const bool innermost = level + 1 == grid_.levels.size();
    for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
      const auto& path = grid_.columns[i].path;
      if (path.size() <= level || (i > 0 && level_of_change(grid_, i) > level)) continue;
      std::size_t last = i;
      while (last + 1 < grid_.columns.size() && level_of_change(grid_, last + 1) > level) ++last;
      const double x = left_ + cells_.lefts[i], end = left_ + cells_.lefts[last] + cells_.size.width;
      text("middle", (x + end) / 2, y, column_name(level, path[level], end - x));
      if (!innermost && last > i)
        svg_ += "<path class=\"line\" d=\"M" + pixels(x) + ' ' + pixels(y + 4) + 'H' + pixels(end) + "\"/>\n";
    }
  }

  std::string column_name(std::size_t level, const MeshIndex& index, double width) const {
    const std::string name(name_of(grid_.levels[level]));
    if (index.left_out > 0) return "+" + with_commas(index.left_out);
    const std::string spelt = name + ' ' + std::to_string(index.index);
    return label_width(spelt) <= width + 4 ? spelt : name.substr(0, 1) + std::to_string(index.index);
  }

  // Colours replicas, with shades for context ranks.
  std::string fill_of(const mesh::Coordinates& at) const {
    const Colour& colour = kSeriesColours[static_cast<std::size_t>(at.data) % kSeriesColours.size()];
    const int contexts = picture_.mesh.context;
    const double opacity = contexts == 1 ? 0.4 : 0.55 - 0.35 * at.context / (contexts - 1);
    return "fill=\"" + std::string(colour.hex) + "\" fill-opacity=\"" + pixels(opacity) + "\"";
  }

  std::string hint_of(std::int64_t rank, const mesh::Coordinates& at) const {
    std::string hint = "rank " + std::to_string(rank) + ": pipeline " + std::to_string(at.pipeline) +
                       ", data " + std::to_string(at.data) + ", context " + std::to_string(at.context) +
                       ", tensor " + std::to_string(at.tensor);
    if (!has_nodes()) return hint;
    return hint + "; node " + std::to_string(mesh::node_of(rank, picture_.ranks_per_node));
  }

  std::int64_t rank_at(std::size_t row, std::size_t column) const {
    return grid_.rows[row].index * picture_.mesh.ranks_per_stage() + grid_.columns[column].first;
  }

  void write_row(std::size_t row) {
    const double y = top_ + cells_.tops[row], middle = y + cells_.size.height / 2 + 4;
    const bool left_out = grid_.rows[row].left_out > 0;
    text("right", left_ - kMeshMargin, middle, row_name(grid_.rows[row]));
    for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
      const double x = left_ + cells_.lefts[i];
      if (left_out || grid_.columns[i].left_out()) {
        text("middle", x + cells_.size.width / 2, middle, "...");
        continue;
      }
      const std::int64_t rank = rank_at(row, i);
      const mesh::Coordinates at = picture_.mesh.coordinates_of(rank);
      rectangle(fill_of(at), x, y, cells_.size.width, cells_.size.height, 3, hint_of(rank, at));
      text("middle", x + cells_.size.width / 2, middle, std::to_string(rank));
    }
  }

  // Frames the cells of a row that are on one node, or several rows if one node has them whole.
  void write_nodes() {
    for (std::size_t row = 0; row < grid_.rows.size(); ++row) {
      if (grid_.rows[row].left_out > 0) continue;
      for (std::size_t i = 0; i < grid_.columns.size();) {
        const std::int64_t node = node_at(row, i);
        std::size_t last = i;
        while (last + 1 < grid_.columns.size() && node_at(row, last + 1) == node &&
               !grid_.columns[last].left_out())
          ++last;
        if (!grid_.columns[i].left_out()) write_frame(row, i, last, node);
        i = last + 1;
      }
    }
  }

  std::int64_t node_at(std::size_t row, std::size_t column) const {
    return mesh::node_of(rank_at(row, column), picture_.ranks_per_node);
  }

  bool has_nodes() const { return picture_.ranks_per_node > 0; }

  // The one node that all ranks of the row are on, or -1.
  std::int64_t whole_node(std::size_t row) const {
    if (grid_.rows[row].left_out > 0) return -1;
    const std::int64_t node = node_at(row, 0);
    return node_at(row, grid_.columns.size() - 1) == node ? node : -1;
  }

  bool continues_node(std::size_t row) const {
    return row > 0 && whole_node(row) >= 0 && whole_node(row) == whole_node(row - 1);
  }

  void write_frame(std::size_t row, std::size_t first, std::size_t last, std::int64_t node) {
    if (continues_node(row)) return;  // drawn with the row above
    std::size_t end = row;
    while (end + 1 < grid_.rows.size() && continues_node(end + 1)) ++end;
    const double x = left_ + cells_.lefts[first] - 4, y = top_ + cells_.tops[row] - 4;
    const double width = left_ + cells_.lefts[last] + cells_.size.width + 4 - x;
    rectangle("class=\"line\"", x, y, width, cells_.tops[end] - cells_.tops[row] + cells_.size.height + 8, 5);
    const std::string name = "node " + std::to_string(node);
    text("quiet", x + 2, y - 3, label_width(name) <= width ? name : "n" + std::to_string(node));
  }

  // Draws copies of the table, as many per line as fit; returns the y at which they end.
  double write_groups(double y) {
    const Cells small(grid_, {9, 9, 2, 4, 2});
    const double most_width = std::max(width_, kLeastRow);
    text("", kMeshMargin, y + 4, "The first group of each kind:");
    y += 20;
    std::vector<std::string> alone;
    double x = kMeshMargin;
    const double height = small.bottom + 64;
    std::size_t colour = 0;
    for (const GroupFacts& facts : group_facts(picture_.mesh, picture_.ranks_per_node)) {
      if (facts.size == 1) {
        alone.emplace_back(name_of(facts.kind));
        continue;
      }
      const double width = std::max(small.right, 32 * kMeshCharacter) + 24;
      if (x > kMeshMargin && x + width > most_width) x = kMeshMargin, y += height;
      write_group(facts, kSeriesColours[colour++ % kSeriesColours.size()], small, x, y);
      x += width;
    }
    y += x > kMeshMargin ? height : 0;
    if (alone.empty()) return y;
    std::string names = "groups of one rank:";
    for (const std::string& name : alone) names += (&name == alone.data() ? " " : ", ") + name;
    text("quiet", kMeshMargin, y + 4, names);
    return y + 8;
  }

  void write_group(const GroupFacts& facts, const Colour& colour, const Cells& small, double x, double y) {
    text("name", x, y + 10, std::string(name_of(facts.kind)) + ": " + with_commas(facts.size) + " ranks");
    text("quiet", x, y + 24, std::string(meaning_of(facts.kind)));
    text("quiet", x, y + 38,
         with_commas(facts.groups) + (facts.groups == 1 ? " group" : " groups") + spread_of(facts));
    const auto ranks = members(picture_.mesh, facts.kind, 0);
    const std::set<std::int64_t> first(ranks.begin(), ranks.end());
    const std::string marked = "fill=\"" + std::string(colour.hex) + "\"";
    for (std::size_t row = 0; row < grid_.rows.size(); ++row) {
      if (grid_.rows[row].left_out > 0) continue;
      for (std::size_t i = 0; i < grid_.columns.size(); ++i) {
        if (grid_.columns[i].left_out()) continue;
        const bool is_first = first.contains(rank_at(row, i));
        rectangle(is_first ? marked : "class=\"other\"", x + small.lefts[i], y + 46 + small.tops[row],
                  small.size.width, small.size.height, 2);
      }
    }
  }

  std::string spread_of(const GroupFacts& facts) const {
    if (!has_nodes()) return {};
    return facts.most_nodes == 1 ? ", each on one node"
                                 : ", on up to " + with_commas(facts.most_nodes) + " nodes";
  }

  const MeshPicture& picture_;
  MeshGrid grid_;
  Cells cells_;
  double left_ = 0, top_ = 0, width_ = 0;
  std::string svg_;
};

}  // namespace

std::string mesh_svg(const MeshPicture& picture) { return MeshWriter(picture).write(); }

}  // namespace penstock::report
