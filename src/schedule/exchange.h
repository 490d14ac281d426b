// SPDX-License-Identifier: Apache-2.0
// Attention that one device computes for another (context exchange, SlimPipe, SC'25; docs/slimpipe.md,
// "Context exchange"). Keys and values are counted in half slices, oldest first: halves 2j and 2j + 1 are the
// two parts of slice j, cut along the tokens.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "schedule/action.h"

namespace penstock::schedule {

// The forward or the backward (B or I) of a key.
struct PassKey {
  bool backward = false;
  Key key;

  friend auto operator<=>(const PassKey&, const PassKey&) = default;
};
inline PassKey pass_of(const Action& action) { return {action.kind != Kind::Forward, action.key}; }

// In every layer of `of` the owner sends its queries and the named K,V halves; the partner computes their
// attention and sends back the result, which the owner merges last. The partner may serve at any time:
// between its operations and in every wait, whatever it runs by then. The owner itself attends to the halves
// after the moved ones. Halves before the first moved one belong to other documents; no query reads them.
struct Exchange {
  Action of;      // the owner's F, or its B or I
  Action during;  // the partner's own action in the same slot, which leaves it time to serve
  std::int32_t owner = 0;
  std::int32_t partner = 0;
  std::int32_t first_half = 0;
  std::int32_t halves = 0;
  Bytes request = 0;  // owner to partner, over all layers
  Bytes reply = 0;    // partner to owner, over all layers

  bool backward() const { return of.kind != Kind::Forward; }
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

}  // namespace penstock::schedule
