// SPDX-License-Identifier: Apache-2.0
// Whether data is what it was: a run that is resumed must not go on with other tokens.
#pragma once

#include <cstdint>
#include <span>

#include "train/data/samples.h"

namespace penstock::train {

// Checksums of the tokens of all stretches: of each stretch every token where it has at most a million over
// the number of stretches, else spans from end to end, in a time independent of the tokens. What cannot be
// read counts as zeros.
struct Content {
  std::uint64_t tokens = 0;
  std::uint64_t marks = 0;  // where their documents begin, and which of them are targets

  friend bool operator==(const Content&, const Content&) = default;
};
Content content_of(std::span<const Stretch> stretches);

}  // namespace penstock::train
