// SPDX-License-Identifier: Apache-2.0
// Which bytes of a record leave for the host in the ATC'24 engine (kwai/Megatron-Kwai,
// pipeline_parallel/offload.py): the saved tensors are lined up, contiguous before strided and large before
// small (the other way round above one half), and the first α of the line's bytes leave, rounded up to a MiB.
// At most one tensor is split; what is left of it is copied to a block of its own.
#pragma once

#include "model/memory_policy.h"

namespace penstock::plan {

struct OffloadSplit {
  Bytes leaving = 0;    // of one record
  Bytes cut_off = 0;    // of the split tensor, the part that leaves; 0: no tensor is split
  Bytes remainder = 0;  // and the part that stays
};

// `tokens` on one device, of a record of `layers` layers.
OffloadSplit split_for_offload(const model::Shape& shape, model::KeepSet keep, std::int64_t tokens,
                               int layers, double ratio);

}  // namespace penstock::plan
