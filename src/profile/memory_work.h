// SPDX-License-Identifier: Apache-2.0
// Measures memory-bound work: a layer's norms, rotation, SwiGLU and residual sums; and plain copies.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Bytes read and written per token by one layer, forward and backward, in passes over the hidden state: first
// norm 2, second norm with the sum before it 4, last sum 3; in the backward, norms with their sums 4 each;
// rotation of Q and K 2 each, both ways. SwiGLU: 3 and 5 passes over f.
double forward_bytes(model::Precision precision, const Sizes& sizes);
double backward_bytes(model::Precision precision, const Sizes& sizes);

// Collective.
ElementwiseRates measure_elementwise(Recorder& recorder, const Sizes& sizes, model::Precision precision);

// Bytes/s per rank copied between two buffers in the compute device's memory, all ranks copying at once.
// Collective.
double measure_copy(Recorder& recorder, const Sizes& sizes);

// Bytes/s per rank between a GPU's memory and the host's, each way with both directions busy. Collective.
double measure_host_link(Recorder& recorder, const Sizes& sizes);

}  // namespace penstock::profile
