// SPDX-License-Identifier: Apache-2.0
#include "plan/published/table.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

// Splits one line.
std::vector<std::string> cells_of(std::string_view line, const std::string& place) {
  std::vector<std::string> cells{""};
  bool quoted = false, closed = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"' && (quoted || (!closed && trim(cells.back()).empty()))) {
      closed = quoted;
      quoted = !quoted;
      if (quoted) cells.back().clear();
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
      closed = false;
    } else {
      cells.back() += c;
    }
  }
  if (quoted) throw InputError(place + " has a quoted cell without an end");
  for (std::string& cell : cells) cell = std::string(trim(cell));
  return cells;
}

}  // namespace

Table::Table(std::string_view text, std::string_view origin) : origin_(origin) {
  std::size_t line_number = 0;
  for (const std::string_view line : split(without_byte_order_mark(text), '\n')) {
    ++line_number;
    if (trim(line).empty()) continue;
    std::vector<std::string> cells = cells_of(line, origin_ + ": line " + std::to_string(line_number));
    if (columns_.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (!columns_.emplace(cells[i], i).second) {
          throw InputError(origin_ + ": the header has column \"" + printable(cells[i]) + "\" twice");
        }
      }
      continue;
    }
    if (cells.size() != columns_.size()) {
      throw InputError(origin_ + ": line " + std::to_string(line_number) + " has " +
                       std::to_string(cells.size()) + " cells; the header has " +
                       std::to_string(columns_.size()));
    }
    rows_.push_back(std::move(cells));
  }
  if (rows_.empty()) throw InputError(origin_ + ": no rows; expected a header line and at least one row");
}

std::string Table::place(std::size_t row, std::string_view column) const {
  return origin_ + ": row " + std::to_string(row + 1) + ", " + std::string(column) + " = \"" +
         printable(text(row, column)) + "\" ";
}

const std::string& Table::text(std::size_t row, std::string_view column) const {
  const auto found = columns_.find(std::string(column));
  if (found == columns_.end()) throw MissingColumn(origin_ + ": no column \"" + std::string(column) + "\"");
  return rows_.at(row)[found->second];
}

std::int64_t Table::integer(std::size_t row, std::string_view column, std::int64_t least) const {
  const auto value = parse_integer(text(row, column));
  if (!value || *value < least) {
    throw InputError(place(row, column) + "must be an integer of at least " + std::to_string(least));
  }
  return *value;
}

int Table::small(std::size_t row, std::string_view column) const {
  return static_cast<int>(std::min<std::int64_t>(integer(row, column), 1 << 20));
}

double Table::number(std::size_t row, std::string_view column, double least) const {
  const auto value = parse_number(text(row, column));
  if (!value || *value < least) {
    throw InputError(place(row, column) + "must be a number of at least " + exact_number(least));
  }
  return *value;
}

std::optional<double> Table::number_if_any(std::size_t row, std::string_view column) const {
  const std::string& cell = text(row, column);
  if (cell.empty() || cell == "OOM") return std::nullopt;
  return number(row, column);
}

void Table::refuse_misspelt(std::span<const std::string_view> known) const {
  std::vector<std::string_view> lacking;
  std::ranges::copy_if(known, std::back_inserter(lacking), [&](std::string_view name) { return !has(name); });
  for (const auto& [column, unused] : columns_) {
    if (std::ranges::count(known, std::string_view(column)) > 0) continue;
    const std::string meant = did_you_mean(column, lacking);
    if (!meant.empty()) throw InputError(origin_ + ": column \"" + printable(column) + "\"" + meant);
  }
}

}  // namespace penstock::plan
