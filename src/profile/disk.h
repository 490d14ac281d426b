// SPDX-License-Identifier: Apache-2.0
// Copies to and from disk.
#pragma once

#include <functional>
#include <string>

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// A read-write descriptor of an unnamed file in the folder; -1 and errno on failure.
using OpenUnnamed = std::function<int(const std::string& folder)>;

// With an unnamed file in `folder`, measured on rank 0; both 0 on other ranks.
DiskRates measure_disk(Recorder& recorder, const std::string& folder, const OpenUnnamed& open);

}  // namespace penstock::profile
