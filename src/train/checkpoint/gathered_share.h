// SPDX-License-Identifier: Apache-2.0
// Files of tensors for hosts without a common file system: rank 0 writes what the others send.
#pragma once

#include <string>

#include "comm/groups.h"
#include "train/checkpoint/file_share.h"

namespace penstock::train {

// As write_share of every rank, but only rank 0 touches the file, and all return when it is written. The
// other ranks' bytes pass through a buffer of a few MiB. Throws RunError naming the path. Collective.
void write_gathered_share(const std::string& path, const FileShare& share, comm::World world);

}  // namespace penstock::train
