// SPDX-License-Identifier: Apache-2.0
#include "plan/published/table.h"

#include "base/error.h"
#include "base/text.h"

namespace penstock::plan {

Table::Table(std::string_view text, std::string_view origin) : origin_(origin) {
  std::size_t line_number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++line_number;
    if (trim(line).empty()) continue;
    std::vector<std::string> cells;
    for (const std::string_view cell : split(line, ',')) cells.emplace_back(trim(cell));
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
  if (found == columns_.end()) throw InputError(origin_ + ": no column \"" + std::string(column) + "\"");
  return rows_.at(row)[found->second];
}

std::int64_t Table::integer(std::size_t row, std::string_view column, std::int64_t least) const {
  const auto value = parse_integer(text(row, column));
  if (!value || *value < least) {
    throw InputError(place(row, column) + "must be an integer of at least " + std::to_string(least));
  }
  return *value;
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

}  // namespace penstock::plan
