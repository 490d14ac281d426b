// SPDX-License-Identifier: Apache-2.0
// Copies to and from disk.
#pragma once

#include <functional>
#include <string>

#include "profile/recorder.h"

namespace penstock::profile {

// A read-write descriptor of an unnamed file in the folder; -1 and errno on failure.
using OpenUnnamed = std::function<int(const std::string& folder)>;

// Bytes/s written to and read from an unnamed file in `folder`, measured on rank 0; both 0 on other ranks.
// Throws RunError naming the folder when it cannot be written.
struct DiskRates {
  double write = 0, read = 0;
};
DiskRates measure_disk(Recorder& recorder, const std::string& folder, const OpenUnnamed& open);

}  // namespace penstock::profile
