// SPDX-License-Identifier: Apache-2.0
// Measures writing to disk and reading back.
#pragma once

#include <functional>
#include <string>

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Returns a read-write descriptor of an unnamed file in the folder; -1 and errno on failure.
using OpenUnnamed = std::function<int(const std::string& folder)>;

// Uses an unnamed file in `folder`. Measured on rank 0; both rates are 0 on other ranks.
DiskRates measure_disk(Recorder& recorder, const std::string& folder, const OpenUnnamed& open);

}  // namespace penstock::profile
