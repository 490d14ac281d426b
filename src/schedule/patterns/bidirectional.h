// SPDX-License-Identifier: Apache-2.0
// The action order of one device of DualPipe (DeepSeek-V3, 2024) and of its half, DualPipeV: two streams of
// micro-batches cross on every device, and in the steady state a forward of one overlaps a backward of the
// other.
#pragma once

#include "schedule/patterns/two_chunks.h"

namespace penstock::schedule {

// `depth` devices lie between the entrance of the streams (rank 0) and the point where they turn or meet
// (rank depth - 1). The stream on its way to this point runs on chunk 0 of the device, the one coming from it
// on chunk 1. The longer of the two streams has `micro_batches`.
Order bidirectional_order(TwoChunks device, int rank, int depth, int micro_batches);

}  // namespace penstock::schedule
