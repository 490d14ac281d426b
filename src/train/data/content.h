// SPDX-License-Identifier: Apache-2.0
// Whether data is what it was: a run that is resumed must not go on with other tokens.
#pragma once

#include <cstdint>
#include <span>

#include "train/data/samples.h"

namespace penstock::train {

// Checksums of the tokens of all stretches: of every one where there are a million or fewer, else of spans
// of them from end to end, in a time independent of their number. What cannot be read counts as zeros.
struct Content {
  std::uint64_t tokens = 0;
  std::uint64_t marks = 0;  // where their documents begin, and which of them are targets

  friend bool operator==(const Content&, const Content&) = default;
};
Content content_of(std::span<const Stretch> stretches);

}  // namespace penstock::train
