// SPDX-License-Identifier: Apache-2.0
// Attention that one device computes for another (context exchange, SlimPipe, SC'25; docs/slimpipe.md,
// "Context exchange"). Keys and values are counted in halves of slices, the oldest first: halves 2j and 2j +
// 1 are the two parts of slice j, cut along its tokens.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "schedule/action.h"

namespace penstock::schedule {

// The forward, or the backward (B or I), of a key.
struct PassKey {
  bool backward = false;
  Key key;

  friend auto operator<=>(const PassKey&, const PassKey&) = default;
};
inline PassKey pass_of(const Action& action) { return {action.kind != Kind::Forward, action.key}; }

// In every layer of `of` the owner sends its queries with the named halves; the partner attends to them and
// sends back what the owner merges last. The partner may do so at any moment: between its operations and in
// every wait, whatever it runs by then. The owner itself attends to the halves behind the last that moves;
// those before the first are of other documents, which nobody reads.
struct Exchange {
  Action of;      // the owner's F, or its B or I
  Action during;  // what the partner itself runs in the same slot: the reason why it has time
  std::int32_t owner = 0;
  std::int32_t partner = 0;
  std::int32_t first_half = 0;
  std::int32_t halves = 0;
  Bytes request = 0;  // to the partner, over all layers
  Bytes reply = 0;    // and back

  bool backward() const { return of.kind != Kind::Forward; }
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

}  // namespace penstock::schedule
