// SPDX-License-Identifier: Apache-2.0
// Work that is bound by memory: a layer's norms, rotation, SwiGLU and residual sums; and plain copies.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

inline constexpr std::int64_t kElementwiseHidden = 512;
inline constexpr std::int64_t kElementwiseFfn = 1376;
inline constexpr std::int64_t kElementwiseHeads = 8;

// Bytes that the passes of one layer read and write for each token, forward and backward: the first
// norm 2 passes over the hidden state, the second 4 with the sum before it, the last sum 3; backward norms 4
// with their sums; rotation of Q and K 2 each, both ways; SwiGLU 3 and 5 over f.
double forward_bytes(model::Precision precision);
double backward_bytes(model::Precision precision);

// Collective.
ElementwiseRates measure_elementwise(Recorder& recorder, const Sizes& sizes, model::Precision precision);

// Bytes/s copied from one buffer to another, by each rank while all do. Collective.
double measure_copy(Recorder& recorder);

}  // namespace penstock::profile
