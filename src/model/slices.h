// SPDX-License-Identifier: Apache-2.0
// How a sequence is cut into slices.
#pragma once

#include <vector>

#include "base/units.h"

namespace penstock::model {

struct TokenRange {
  Tokens begin = 0;
  Tokens length = 0;
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

// Cuts [0, tokens) into n consecutive ranges whose lengths are multiples of `unit`, but for what the last one
// lacks when tokens is none, and differ by at most one unit. Throws InputError when a slice would be empty.
std::vector<TokenRange> cut_into_slices(Tokens tokens, int n, Tokens unit = 1);

}  // namespace penstock::model
