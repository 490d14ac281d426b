// SPDX-License-Identifier: Apache-2.0
// Memory-bound work: a layer's norms, rotation, SwiGLU and residual sums; and plain copies.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Bytes read and written per token by the passes of one layer, forward and backward: the first norm 2 passes
// over the hidden state, the second 4 with the sum before it, the last sum 3; backward norms 4 with their
// sums; rotation of Q and K 2 each, both ways; SwiGLU 3 and 5 over f.
double forward_bytes(model::Precision precision, const Sizes& sizes);
double backward_bytes(model::Precision precision, const Sizes& sizes);

// Collective.
ElementwiseRates measure_elementwise(Recorder& recorder, const Sizes& sizes, model::Precision precision);

// Bytes/s per rank copied between two buffers of the compute device's memory, with all ranks copying.
// Collective.
double measure_copy(Recorder& recorder, const Sizes& sizes);

// Bytes/s per rank between a card's memory and the host's, each way with the other way at work too.
// Collective.
double measure_host_link(Recorder& recorder, const Sizes& sizes);

}  // namespace penstock::profile
