// SPDX-License-Identifier: Apache-2.0
// Layers for a run whose ranks are not equally fast.
#pragma once

#include <string>

namespace penstock::cli {

// From a run directory's run file and the times of its ranks (metrics.jsonl, also while it runs, or
// summary.json): a proposal for parallel.layers, with the step's time beside that of the layers it had, both
// simulated with those times. Throws InputError where the directory is no run's; NoAnswer where its ranks
// were not compared.
std::string propose_layers(const std::string& directory);

}  // namespace penstock::cli
