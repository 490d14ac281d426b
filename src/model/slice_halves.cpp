// SPDX-License-Identifier: Apache-2.0
#include "model/slice_halves.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::model {

SlicePart part_in_halves(int slice, Tokens tokens, int first, int count) {
  const int from = std::clamp(first - 2 * slice, 0, 2), to = std::clamp(first + count - 2 * slice, 0, 2);
  const auto begin_of = [&](int half) { return half == 0 ? 0 : half == 1 ? (tokens + 1) / 2 : tokens; };
  return {slice, begin_of(from), begin_of(std::max(from, to)) - begin_of(from)};
}

std::vector<SlicePart> parts_of_halves(std::span<const TokenRange> slices, int first, int count) {
  PENSTOCK_CHECK(first >= 0 && count >= 0 && first + count <= 2 * std::ssize(slices),
                 "halves are of slices that exist");
  std::vector<SlicePart> parts;
  for (int slice = first / 2; 2 * slice < first + count; ++slice) {
    const SlicePart part = part_in_halves(slice, slices[slice].length, first, count);
    if (part.length > 0) parts.push_back(part);
  }
  return parts;
}

}  // namespace penstock::model
