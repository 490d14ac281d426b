// SPDX-License-Identifier: Apache-2.0
#include "base/columns.h"

#include <algorithm>

namespace penstock {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

namespace {

std::string blanks(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ');
}

}  // namespace

std::string left_aligned(std::string_view text, std::size_t width) {
  return std::string(text) + blanks(text, width);
}

std::string right_aligned(std::string_view text, std::size_t width) {
  return blanks(text, width) + std::string(text);
}

std::string columns(const Rows& rows, std::string_view sides) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool left = sides[std::min(c, sides.size() - 1)] == 'l';
      line +=
          (c > 0 ? "  " : "") + (left ? left_aligned(row[c], widths[c]) : right_aligned(row[c], widths[c]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace penstock
