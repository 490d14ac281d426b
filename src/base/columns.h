// SPDX-License-Identifier: Apache-2.0
// Text in columns separated by two spaces. Widths count characters, not bytes of UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock {

using Rows = std::vector<std::vector<std::string>>;  // rows of cells; a heading is an ordinary row

// One line per row; each column is as wide as its widest cell. `sides` holds 'l' for each left-aligned column
// and 'r' for each right-aligned one; its last letter applies to all further columns. No trailing spaces.
std::string columns(const Rows& rows, std::string_view sides = "r");

std::size_t width_of(std::string_view text);

// Pads with spaces to at least `width`.
std::string left_aligned(std::string_view text, std::size_t width);
std::string right_aligned(std::string_view text, std::size_t width);

}  // namespace penstock
