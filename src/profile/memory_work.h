// SPDX-License-Identifier: Apache-2.0
// Memory-bound work: a layer's norms, rotation, SwiGLU and residual sums; and plain copies.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

inline constexpr std::int64_t kElementwiseHidden = 512;
inline constexpr std::int64_t kElementwiseFfn = 1376;
inline constexpr std::int64_t kElementwiseHeads = 8;

// Bytes read and written per token by the passes of one layer, forward and backward: the first norm 2 passes
// over the hidden state, the second 4 with the sum before it, the last sum 3; backward norms 4 with their
// sums; rotation of Q and K 2 each, both ways; SwiGLU 3 and 5 over f.
double forward_bytes(model::Precision precision);
double backward_bytes(model::Precision precision);

// Collective.
ElementwiseRates measure_elementwise(Recorder& recorder, const Sizes& sizes, model::Precision precision);

// Bytes/s per rank copied between two buffers, with all ranks copying. Collective.
double measure_copy(Recorder& recorder);

}  // namespace penstock::profile
