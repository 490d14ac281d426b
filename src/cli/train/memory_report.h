// SPDX-License-Identifier: Apache-2.0
// Memory tables of a run: predicted before it starts, predicted and measured at its end.
#pragma once

#include <string>

#include "run/run.h"
#include "train/record/metrics.h"

namespace penstock::cli {

// A row per device; a column for each category in use on any device, the total and the limit.
std::string memory_before(const run::Run& run);

// The same with two rows per device, predicted and measured, and the total's error; then the process's
// resident set and its accounted parts.
std::string memory_after(const train::Summary& summary);

}  // namespace penstock::cli
