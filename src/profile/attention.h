// SPDX-License-Identifier: Apache-2.0
// Attention of slices over their own keys and over earlier slices', with what goes with it: the output
// brought back to rows of tokens, partial results merged, gradients of keys and values added up.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

inline constexpr std::int64_t kAttentionHeads = 8;
inline constexpr std::int64_t kHeadSize = 64;

// Collective.
AttentionRates measure_attention(Recorder& recorder, const Sizes& sizes, model::Precision precision);

}  // namespace penstock::profile
