// SPDX-License-Identifier: Apache-2.0
// Columns of right-aligned text.
#pragma once

#include <string>
#include <vector>

namespace penstock::sim {

// Rows of cells; the first row is the head. Every line ends in a newline.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace penstock::sim
