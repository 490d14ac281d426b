// SPDX-License-Identifier: Apache-2.0
#include "report/grid.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/columns.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "report/ansi.h"
#include "report/palette.h"
#include "schedule/text.h"

namespace penstock::report {
namespace {

using schedule::Finding;
using schedule::Kind;
using schedule::Schedule;

using Marks = std::set<std::pair<int, int>>;  // (device, position)

// Devices and units of time multiply: a file of 150 KB may stand for 20 GB of idle cells.
constexpr std::int64_t kMostCharacters = 256 << 20;

// A device's line in a block.
struct Line {
  std::string text;
  std::vector<Kind> kinds;  // one per character; separators are idle
};

class Grid {
 public:
  // If marks are given, leaves out blocks without any.
  Grid(const Schedule& schedule, Layout layout, std::optional<Marks> marks, const GridOptions& options)
      : sliced_(is_sliced(schedule)),
        layout_(std::move(layout)),
        only_marked_(marks.has_value()),
        marks_(std::move(marks).value_or(Marks{})),
        options_(options) {
    label_width_ = std::to_string(std::max(schedule.device_count() - 1, 0)).size() + 8;
    unit_width_ = widest_unit() + 1;
    for (int device = 0; device < std::ssize(layout_.devices); ++device) {
      for (const Cell& cell : layout_.devices[device])
        if (marks_.contains({device, cell.position})) marked_units_.insert(cell.start);
    }
  }

  // Characters of all blocks, without colours.
  std::int64_t size() const {
    const std::int64_t units = units_per_block(), blocks = (layout_.end + units - 1) / units;
    const auto label = static_cast<std::int64_t>(label_width_), unit = static_cast<std::int64_t>(unit_width_);
    return std::ssize(layout_.devices) * (blocks * label + layout_.end * unit);
  }

  std::string print() const {
    const std::int64_t units = units_per_block();
    std::string text;
    for (std::int64_t begin = 0; begin < layout_.end; begin += units) {
      const std::int64_t end = std::min(begin + units, layout_.end);
      if (!is_shown(begin, end)) continue;
      if (!text.empty()) text += '\n';
      append_block(text, begin, end);
    }
    return text;
  }

 private:
  std::string token_of(int device, const Cell& cell) const {
    std::string token = to_token(cell.action, sliced_);
    const auto sign = options_.signs.find({device, cell.position});
    if (sign != options_.signs.end()) token += sign->second;
    return marks_.contains({device, cell.position}) ? '>' + token + '<' : token;
  }

  // Width of a unit so that every token fits into its cell, or into its first unit if lines are split.
  std::size_t widest_unit() const {
    std::size_t widest = 1;
    for (int device = 0; device < std::ssize(layout_.devices); ++device) {
      for (const Cell& cell : layout_.devices[device]) {
        const auto units = options_.most_columns > 0 ? 1 : static_cast<std::size_t>(cell.end - cell.start);
        widest = std::max(widest, (token_of(device, cell).size() + units) / units - 1);
      }
    }
    return widest;
  }

  Line line_of(int device, std::int64_t begin, std::int64_t end) const {
    const auto size = static_cast<std::size_t>(end - begin) * unit_width_;
    Line line{std::string(size, ' '), std::vector<Kind>(size, Kind::Idle)};
    for (std::size_t at = 0; at < size; at += unit_width_) line.text[at] = '.';
    const std::vector<Cell>& cells = layout_.devices[device];
    auto cell = std::ranges::partition_point(cells, [&](const Cell& c) { return c.end <= begin; });
    for (; cell != cells.end() && cell->start < end; ++cell) {
      const std::int64_t from = std::max(cell->start, begin), to = std::min(cell->end, end);
      const std::size_t at = static_cast<std::size_t>(from - begin) * unit_width_;
      const std::size_t width =
          static_cast<std::size_t>(to - from) * unit_width_ - (to == cell->end ? 1 : 0);  // the separator
      std::fill_n(line.text.begin() + at, width, cell->end - cell->start > 1 ? '=' : ' ');
      std::fill_n(line.kinds.begin() + at, width, cell->action.kind);
      if (from != cell->start) continue;  // its token is in the previous block
      const std::string token = token_of(device, *cell);
      line.text.replace(at, token.size(), token);
    }
    return line;
  }

  std::int64_t units_per_block() const {
    if (options_.most_columns <= 0) return std::max<std::int64_t>(layout_.end, 1);
    const std::int64_t room = options_.most_columns - static_cast<std::int64_t>(label_width_) - 1;
    return std::max<std::int64_t>(room / static_cast<std::int64_t>(unit_width_), 1);
  }

  bool is_shown(std::int64_t begin, std::int64_t end) const {
    if (!only_marked_) return true;
    if (marks_.empty()) return begin == 0;
    const auto next = marked_units_.lower_bound(begin);
    return next != marked_units_.end() && *next < end;
  }

  void append_block(std::string& text, std::int64_t begin, std::int64_t end) const {
    text += ruler(begin, end);
    for (int device = 0; device < std::ssize(layout_.devices); ++device) {
      text += left_aligned("device " + std::to_string(device), label_width_);
      append_line(text, line_of(device, begin, end));
      text += '\n';
    }
  }

  // A number above every fifth unit.
  std::string ruler(std::int64_t begin, std::int64_t end) const {
    std::string text = left_aligned(layout_.in_time ? "time" : "position", label_width_);
    for (std::int64_t unit = (begin + 4) / 5 * 5; unit < end; unit += 5) {
      const std::size_t at = label_width_ + static_cast<std::size_t>(unit - begin) * unit_width_;
      if (text.size() > at) continue;  // the previous number takes the space
      text.append(at - text.size(), ' ') += std::to_string(unit);
    }
    return text + '\n';
  }

  void append_line(std::string& text, const Line& line) const {
    const auto is_seen = [&](std::size_t at) { return options_.colour && line.kinds[at] != Kind::Idle; };
    std::size_t end = line.text.size();
    while (end > 0 && line.text[end - 1] == ' ' && !is_seen(end - 1)) --end;
    for (std::size_t at = 0; at < end;) {
      std::size_t next = at + 1;
      while (next < end && line.kinds[next] == line.kinds[at]) ++next;
      const std::string_view part = std::string_view(line.text).substr(at, next - at);
      text += is_seen(at) ? paint(colour_of(line.kinds[at]), part) : std::string(part);
      at = next;
    }
  }

  bool sliced_;
  Layout layout_;
  bool only_marked_;
  Marks marks_;
  GridOptions options_;
  std::size_t label_width_ = 0;
  std::size_t unit_width_ = 0;           // characters, separator included
  std::set<std::int64_t> marked_units_;  // where marked cells start
};

}  // namespace

std::string grid(const Schedule& schedule, const GridOptions& options) {
  const Grid drawn(schedule, lay_out(schedule, options.times), std::nullopt, options);
  if (drawn.size() > kMostCharacters) {
    throw InputError(schedule.name + ": a grid of " + counted(schedule.device_count(), "device") +
                     " would take " + print_bytes(drawn.size()) + " of text; expected at most " +
                     print_bytes(kMostCharacters) + ": draw it as SVG, or print it as CSV or JSON");
  }
  return drawn.print();
}

std::string marked_grid(const Schedule& schedule, std::span<const Finding> findings,
                        const GridOptions& options) {
  Marks marks;
  for (const Finding& finding : findings) {
    if (finding.position >= 0) marks.emplace(finding.device, finding.position);
  }
  return Grid(schedule, lay_out_by_position(schedule), std::move(marks), options).print();
}

}  // namespace penstock::report
