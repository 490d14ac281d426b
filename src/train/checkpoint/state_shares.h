// SPDX-License-Identifier: Apache-2.0
// A rank's contribution to a saved state: the weights and moments that it alone writes.
#pragma once

#include <vector>

#include "train/checkpoint/file_share.h"
#include "train/checkpoint/layout.h"
#include "train/checkpoint/state_copy.h"
#include "train/step/trainer.h"

namespace penstock::train {

// One share per file; the shares refer to the trainer's memory.
std::vector<FileShare> shares_of_state(const std::vector<CheckpointFile>& files, const model::Shape& shape,
                                       Trainer& trainer);

Bytes bytes_in(const std::vector<FileShare>& shares);

// One entry per tensor share, in the order of copy_shares.
std::vector<CopiedTensor> copied_tensors(const std::vector<FileShare>& shares);

// Copies the shares' bytes in order to `to`; returns the end.
std::byte* copy_shares(const std::vector<FileShare>& shares, std::byte* to);

}  // namespace penstock::train
