// SPDX-License-Identifier: Apache-2.0
// Report sections of simulations and finished runs.
#pragma once

#include <string>
#include <vector>

#include "cli/simulate/simulation.h"
#include "report/report.h"

namespace penstock::cli {

// Timeline, idle time by cause, and memory over time if the result has samples. `standing` has each device's
// weights, gradients, optimizer states and buffers; empty if unknown.
report::Track track_of(std::string label, const sim::Result& result, const model::MemoryTable& standing = {});

// Timelines, idle time by cause, memory over time if the results have samples, and a table of the devices.
report::Run run_of(const Simulated& simulated);

// A run directory: its last steps measured and simulated, loss and throughput, memory predicted and measured,
// the configuration. If several ranks form one device, the first run has the first pipeline's measurements
// and a second run has every rank. Throws InputError naming the file if the directory holds no finished run.
std::vector<report::Run> runs_of_directory(const std::string& directory);

// A run directory without timeline: loss and throughput until now, attempts, configuration, and `why` it has
// none as a note.
report::Run run_without_timeline(const std::string& directory, const std::string& why);

}  // namespace penstock::cli
