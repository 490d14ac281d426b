// SPDX-License-Identifier: Apache-2.0
// Attention of slices over their own keys and over earlier slices', with the work around it: reordering the
// output to token rows, merging partial results, adding the gradients of keys and values. Earlier keys are as
// many as one call of a run goes over (keys_at_once() of nn/kernels/attention.h), and lie one after the other
// already: that copy is not measured.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Collective.
AttentionRates measure_attention(Recorder& recorder, const Sizes& sizes, model::Precision precision);

}  // namespace penstock::profile
