// SPDX-License-Identifier: Apache-2.0
// Slices in halves, the unit in which attention to earlier slices moves between devices (algorithms:
// "Attention context exchange"): halves 2j and 2j + 1 are the two parts of slice j, cut along its tokens; of
// an odd number of tokens the first has one more, so the second half of a single token is empty.
#pragma once

#include <span>
#include <vector>

#include "model/slices.h"

namespace penstock::model {

// Tokens of one slice, counted from the slice's first.
struct SlicePart {
  int slice = 0;
  Tokens begin = 0;
  Tokens length = 0;
  friend bool operator==(const SlicePart&, const SlicePart&) = default;
};

// The part of a slice of `tokens` tokens that lies in the halves [first, first + count) of its micro-batch;
// empty when none does.
SlicePart part_in_halves(int slice, Tokens tokens, int first, int count);

// All of these halves, oldest first, both halves of a slice as one part; empty parts are left out.
std::vector<SlicePart> parts_of_halves(std::span<const TokenRange> slices, int first, int count);

}  // namespace penstock::model
