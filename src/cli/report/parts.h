// SPDX-License-Identifier: Apache-2.0
// Parts of a bar chart, filled row by row.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "report/report.h"

namespace penstock::cli {

// Named values of each row. All rows share the names, in the order in which they were first added.
class Parts {
 public:
  explicit Parts(std::size_t rows) : rows_(rows) {}
  void add(std::size_t row, std::string_view name, double value) {
    auto found = std::ranges::find(parts_, name, &report::BarChart::Part::name);
    if (found == parts_.end()) found = parts_.insert(found, {std::string(name), std::vector<double>(rows_)});
    found->values[row] = value;
  }
  std::vector<report::BarChart::Part> without_empty() {
    std::erase_if(parts_, [](const auto& part) {
      return std::ranges::all_of(part.values, [](double value) { return value == 0; });
    });
    return std::move(parts_);
  }

 private:
  std::size_t rows_;
  std::vector<report::BarChart::Part> parts_;
};

}  // namespace penstock::cli
