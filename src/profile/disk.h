// SPDX-License-Identifier: Apache-2.0
// Copies to and from disk.
#pragma once

#include <string>

#include "profile/recorder.h"

namespace penstock::profile {

// Bytes/s written to and read from a file in `folder`, which is removed; rank 0 alone. Both 0 on the others.
// Throws RunError naming the folder when it cannot be written.
struct DiskRates {
  double write = 0, read = 0;
};
DiskRates measure_disk(Recorder& recorder, const std::string& folder);

}  // namespace penstock::profile
