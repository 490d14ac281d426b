// SPDX-License-Identifier: Apache-2.0
#include "base/aligned.h"

#include <algorithm>

namespace penstock {

std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t names) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - row[c].size(), ' ');
      if (c > 0) text += "  ";
      text += c < names ? row[c] + blanks : blanks + row[c];
    }
    text += "\n";
  }
  return text;
}

}  // namespace penstock
