// SPDX-License-Identifier: Apache-2.0
// Columns of text.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// Rows of cells; the first row is the head. The first `names` columns begin at the left, the others end at
// the right of their column. Every line ends in a newline.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t names = 0);

}  // namespace penstock
