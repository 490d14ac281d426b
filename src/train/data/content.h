// SPDX-License-Identifier: Apache-2.0
// Whether data is what it was: a run that is resumed must not go on with other tokens.
#pragma once

#include <cstdint>
#include <span>

#include "train/data/samples.h"

namespace penstock::train {

// A checksum of the tokens of all stretches: of every one where there are a million or fewer, else of spans
// of them from end to end, in a time independent of their number. Tokens that cannot be read count as zeros.
std::uint64_t content_of(std::span<const Stretch> stretches);

}  // namespace penstock::train
