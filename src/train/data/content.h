// SPDX-License-Identifier: Apache-2.0
// Detects changed data: a resumed run must not continue with other tokens.
#pragma once

#include <cstdint>
#include <span>

#include "train/data/samples.h"

namespace penstock::train {

// Checksums over the tokens of stretches. A stretch of at most a million tokens over the number of
// stretches is read in full, others in spans spread from end to end, so the time does not depend on the
// number of tokens. Unreadable tokens count as zeros.
struct Content {
  std::uint64_t tokens = 0;
  std::uint64_t marks = 0;     // where documents begin, and which tokens are targets
  std::uint64_t held_out = 0;  // of both, of the held-out data

  friend bool operator==(const Content&, const Content&) = default;
};
Content content_of(std::span<const Stretch> training, std::span<const Stretch> held_out);

}  // namespace penstock::train
