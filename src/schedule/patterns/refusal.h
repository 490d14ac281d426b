// SPDX-License-Identifier: Apache-2.0
// Refusals that name the constraint and the nearest legal values.
#pragma once

#include <string>

namespace penstock::schedule {

// The legal values next to `value`, below and above: "6 or 8", "4", or "none" when there is none in 1..limit.
template <class Legal>
std::string nearest_legal(int value, int limit, Legal legal) {
  int below = value - 1;
  while (below > 0 && !legal(below)) --below;
  int above = value + 1;
  while (above <= limit && !legal(above)) ++above;
  if (below > 0 && above <= limit) return std::to_string(below) + " or " + std::to_string(above);
  if (below > 0) return std::to_string(below);
  return above <= limit ? std::to_string(above) : "none";
}

}  // namespace penstock::schedule
