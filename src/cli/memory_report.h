// SPDX-License-Identifier: Apache-2.0
// The memory of a run as people read it: predicted before it starts, measured beside that at its end.
#pragma once

#include <string>

#include "train/metrics.h"
#include "train/run_plan.h"

namespace penstock::cli {

// A row for each device, a column for each category that any device has, the total and the limit.
std::string memory_before(const train::RunPlan& plan);

// The same with two rows for each device, predicted and measured, and what the total is off by; then the
// process's resident set beside what was accounted.
std::string memory_after(const train::Summary& summary);

}  // namespace penstock::cli
