// SPDX-License-Identifier: Apache-2.0
// Memory over time for the report, with the same categories and order for predictions and measurements.
#pragma once

#include "cli/simulate/simulation.h"
#include "report/report.h"

namespace penstock::cli {

// Predicted memory of one device, from a simulation with samples. `standing` has its weights, gradients and
// optimizer states, and buffers; null if unknown.
report::MemorySeries predicted_series(const sim::MemoryUse& memory, const model::MemoryPeaks* standing);

// Measured memory of all devices, from the allocator. Draws an op's temporaries at their peak while it runs.
std::vector<report::MemorySeries> measured_memory(const schedule::Program& program, const MeasuredStep& step);

}  // namespace penstock::cli
