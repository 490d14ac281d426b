// SPDX-License-Identifier: Apache-2.0
// Tensor files for hosts without a common file system: rank 0 writes the bytes that the others send.
#pragma once

#include <string>

#include "comm/groups.h"
#include "train/checkpoint/file_share.h"

namespace penstock::train {

// Like write_share on every rank, but only rank 0 touches the file, and all ranks return when it is written.
// The other ranks' bytes pass through a buffer of a few MiB. Throws RunError naming the path. Collective.
void write_gathered_share(const std::string& path, const FileShare& share, comm::World world);

}  // namespace penstock::train
