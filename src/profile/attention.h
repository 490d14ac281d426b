// SPDX-License-Identifier: Apache-2.0
// Measures attention of slices over their own keys and over earlier slices', with the work around it:
// reordering the output to token rows, merging partial results, adding the gradients of keys and values.
// There are as many earlier keys as one call of a run takes (keys_at_once() in nn/kernels/attention.h),
// already contiguous: the copy that joins them is not measured.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Collective.
AttentionRates measure_attention(Recorder& recorder, const Sizes& sizes, model::Precision precision);

}  // namespace penstock::profile
