// SPDX-License-Identifier: Apache-2.0
// Attention of slices over their own keys and over earlier slices', with the work around it: reordering the
// output to token rows, merging partial results, adding the gradients of keys and values.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Collective.
AttentionRates measure_attention(Recorder& recorder, const Sizes& sizes, model::Precision precision);

}  // namespace penstock::profile
