// SPDX-License-Identifier: Apache-2.0
// Half slices, the unit in which attention to earlier slices moves between devices (docs/slimpipe.md,
// "Context exchange"): halves 2j and 2j + 1 are the two halves of slice j's tokens. With an odd number of
// tokens the first half has one more, so the second half of a single token is empty.
#pragma once

#include <span>
#include <vector>

#include "model/slices.h"

namespace penstock::model {

// A token range of one slice, relative to its start.
struct SlicePart {
  int slice = 0;
  Tokens begin = 0;
  Tokens length = 0;
  friend bool operator==(const SlicePart&, const SlicePart&) = default;
};

// The part of a slice of `tokens` tokens within the halves [first, first + count) of its micro-batch; may be
// empty.
SlicePart part_in_halves(int slice, Tokens tokens, int first, int count);

// All of these halves, oldest first, with both halves of a slice joined. Omits empty parts.
std::vector<SlicePart> parts_of_halves(std::span<const TokenRange> slices, int first, int count);

}  // namespace penstock::model
