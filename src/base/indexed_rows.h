// SPDX-License-Identifier: Apache-2.0
// Tables with a row for each enumerator, which are read at its index.
#pragma once

#include <cstddef>

namespace penstock {

// Whether each row stands at the index of the enumerator that its member names.
template <class Rows, class Row, class Enumerator>
constexpr bool rows_are_in_order(const Rows& rows, Enumerator Row::*member) {
  std::size_t index = 0;
  for (const Row& row : rows) {
    if (static_cast<std::size_t>(row.*member) != index++) return false;
  }
  return true;
}

}  // namespace penstock
