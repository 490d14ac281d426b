// SPDX-License-Identifier: Apache-2.0
#include "model/slices.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"

namespace penstock::model {

std::vector<TokenRange> cut_into_slices(Tokens tokens, int n, Tokens unit) {
  PENSTOCK_CHECK(tokens > 0 && n > 0 && unit > 0, "sizes of slices are positive");
  const Tokens units = ceil_div(tokens, unit);
  if (n > units) {
    throw InputError("schedule.slices = " + std::to_string(n) + " is more than the " +
                     counted(units, unit == 1 ? "token" : "unit") +
                     (unit == 1 ? "" : " of " + counted(unit, "token")) + " of a sequence; use at most " +
                     std::to_string(units));
  }
  // Shorter slices come last, where they attend to the most keys. A last slice with a partial unit counts as
  // a longer one; otherwise it would be more than one unit shorter.
  const Tokens longer = units % n;
  const bool last_is_longer = longer > 0 && tokens % unit != 0;
  std::vector<TokenRange> ranges;
  Tokens begin = 0;
  for (int i = 0; i < n; ++i) {
    const bool is_longer = last_is_longer ? i < longer - 1 || i == n - 1 : i < longer;
    const Tokens length = std::min((units / n + (is_longer ? 1 : 0)) * unit, tokens - begin);
    ranges.push_back({begin, length});
    begin += length;
  }
  PENSTOCK_CHECK(begin == tokens, "slices make up the sequence");
  return ranges;
}

}  // namespace penstock::model
