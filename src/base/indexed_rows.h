// SPDX-License-Identifier: Apache-2.0
// Tables with one row per enumerator, indexed by the enumerator.
#pragma once

#include <cstddef>

namespace penstock {

// Returns whether each row is at the index of the enumerator in its `member`.
template <class Rows, class Row, class Enumerator>
constexpr bool rows_are_in_order(const Rows& rows, Enumerator Row::*member) {
  std::size_t index = 0;
  for (const Row& row : rows) {
    if (static_cast<std::size_t>(row.*member) != index++) return false;
  }
  return true;
}

}  // namespace penstock
