// SPDX-License-Identifier: Apache-2.0
// Attention that one device computes for another (context exchange, SlimPipe, SC'25; algorithms: "Attention
// context exchange"). Keys and values are counted in halves of slices, the oldest first: halves 2j and 2j + 1
// are the two parts of slice j, cut along its tokens.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "schedule/action.h"

namespace penstock::schedule {

// In every layer of `of` the owner sends its queries with the named halves; the helper attends to them and
// sends back what the owner merges last. The helper may do so at any moment: between its operations and in
// every wait, whatever it runs by then.
struct Help {
  Action of;      // the owner's F, or its B or I
  Action during;  // what the helper itself runs in the same slot: the reason why it has time
  std::int32_t owner = 0;
  std::int32_t helper = 0;
  std::int32_t first_half = 0;
  std::int32_t halves = 0;
  Bytes request = 0;  // to the helper, over all layers
  Bytes reply = 0;    // and back

  bool backward() const { return of.kind != Kind::Forward; }
  friend bool operator==(const Help&, const Help&) = default;
};

}  // namespace penstock::schedule
