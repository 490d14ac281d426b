// SPDX-License-Identifier: Apache-2.0
// Tables of published figures: CSV with a header line. Cells in double quotes may contain commas and doubled
// quotes. All input is validated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::plan {

// Thrown for a column that the header lacks: wrong in every row.
struct MissingColumn : InputError {
  using InputError::InputError;
};

class Table {
 public:
  // `origin` names the text in errors. Throws InputError for an empty text, a row whose number of cells
  // differs from the header's, or a duplicate column.
  Table(std::string_view text, std::string_view origin);

  std::size_t size() const { return rows_.size(); }
  bool has(std::string_view column) const { return columns_.contains(std::string(column)); }
  const std::string& origin() const { return origin_; }

  // Cells by row and column. Throw MissingColumn, or InputError naming the row, the column and the expected
  // value: a cell that is not a number, a number below `least`. An empty cell and "OOM" are not numbers.
  const std::string& text(std::size_t row, std::string_view column) const;
  std::int64_t integer(std::size_t row, std::string_view column, std::int64_t least = 1) const;
  int small(std::size_t row, std::string_view column) const;  // an integer, capped at 2^20
  double number(std::size_t row, std::string_view column, double least = 0) const;
  std::optional<double> number_if_any(std::size_t row, std::string_view column) const;

  // Throws InputError for a column that is none of `known` but nearly one that the table lacks: a misspelt
  // column of settings would be read as if no row had them. Other columns are the user's own.
  void refuse_misspelt(std::span<const std::string_view> known) const;

 private:
  std::string place(std::size_t row, std::string_view column) const;

  std::string origin_;
  std::map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace penstock::plan
