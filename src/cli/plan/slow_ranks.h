// SPDX-License-Identifier: Apache-2.0
// Layers for a run whose ranks are not equally fast.
#pragma once

#include <string>

namespace penstock::cli {

// Proposes parallel.layers from a run directory's run file and the times of its ranks (metrics.jsonl, also
// during the run, or summary.json). Also gives the step times of the old and new layers, both simulated with
// those times. Throws InputError if the directory holds no run, NoAnswer if its ranks were not compared.
std::string propose_layers(const std::string& directory);

}  // namespace penstock::cli
