// SPDX-License-Identifier: Apache-2.0
// Memory over time for the report: the same categories in the same order for predictions and measurements.
#pragma once

#include "cli/simulate/simulation.h"
#include "report/report.h"

namespace penstock::cli {

// Of one device, from a simulation with samples; `standing` has its weights, gradients and optimizer states,
// null where they are unknown.
report::MemorySeries predicted_series(const sim::DeviceMemory& memory, const model::DeviceMemory* standing);

// Of all devices, by the allocator. While an op runs its temporaries are drawn at their peak.
std::vector<report::MemorySeries> measured_memory(const schedule::Program& program, const MeasuredStep& step);

}  // namespace penstock::cli
