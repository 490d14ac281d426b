// SPDX-License-Identifier: Apache-2.0
// Cutting a sequence into slices.
#pragma once

#include <vector>

#include "base/units.h"

namespace penstock::model {

struct TokenRange {
  Tokens begin = 0;
  Tokens length = 0;
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

// Cuts [0, tokens) into n consecutive ranges whose lengths are multiples of `unit` (except the last, if
// tokens is not) and differ by at most one unit. Throws InputError if a slice would be empty.
std::vector<TokenRange> cut_into_slices(Tokens tokens, int n, Tokens unit = 1);

}  // namespace penstock::model
