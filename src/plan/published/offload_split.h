// SPDX-License-Identifier: Apache-2.0
// The bytes of a record that the ATC'24 engine offloads (kwai/Megatron-Kwai, pipeline_parallel/offload.py):
// saved tensors are ordered contiguous before strided and large before small (reversed if α is above one
// half), and the first α of the bytes are offloaded, rounded up to a MiB. At most one tensor is split; the
// part that stays is copied to a block of its own.
#pragma once

#include "model/memory/policy.h"

namespace penstock::plan {

struct OffloadSplit {
  Bytes leaving = 0;    // per record
  Bytes cut_off = 0;    // offloaded part of the split tensor; 0: no tensor is split
  Bytes remainder = 0;  // the part that stays
};

// For `tokens` on one device and a record of `layers` layers.
OffloadSplit split_for_offload(const model::Shape& shape, model::KeepSet keep, std::int64_t tokens,
                               int layers, double ratio);

}  // namespace penstock::plan
