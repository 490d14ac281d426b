// SPDX-License-Identifier: Apache-2.0
#include "model/slices.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::model {

std::vector<TokenRange> cut_into_slices(Tokens tokens, int n, Tokens unit) {
  PENSTOCK_CHECK(tokens > 0 && n > 0 && unit > 0, "sizes of slices are positive");
  const Tokens units = (tokens + unit - 1) / unit;
  if (n > units) {
    throw InputError("schedule.slices = " + std::to_string(n) + " is more than the " + std::to_string(units) +
                     (unit == 1 ? " tokens" : " units of " + std::to_string(unit) + " tokens") +
                     " of a sequence; use at most " + std::to_string(units));
  }
  std::vector<TokenRange> ranges;
  Tokens begin = 0;
  for (int i = 0; i < n; ++i) {
    // The shorter slices come last, where they attend to the most keys.
    const Tokens length = std::min((units / n + (i < units % n ? 1 : 0)) * unit, tokens - begin);
    ranges.push_back({begin, length});
    begin += length;
  }
  return ranges;
}

}  // namespace penstock::model
