// SPDX-License-Identifier: Apache-2.0
// What a resumed run takes over from its directory: the settings that fix its bits, and its options.
#pragma once

#include <optional>
#include <string>

#include "run/options.h"

namespace penstock::cli {

// Options of the run in the directory, if its run file can be read.
std::optional<run::Options> options_before(const std::string& directory);

// Whether the run in the directory had the same model, data and training, by its run file.
bool is_run_before(run::Options options);

// Fills in missing options of [numerics] from the newest readable checkpoint, or from the run file if the run
// has only copies in memory. Throws InputError if parallel.dp or parallel.tp does not fit them, naming the
// nearest that do: unlike in a new run, numerics cannot follow the ranks.
void take_numerics(run::Options& options);

}  // namespace penstock::cli
