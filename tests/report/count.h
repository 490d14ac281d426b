// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace penstock::report {

// How often `part` is in `text`.
inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace penstock::report
