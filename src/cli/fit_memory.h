// SPDX-License-Identifier: Apache-2.0
// Does a run fit in memory.limit, and with which policy? Asked of predictions, before anything starts.
#pragma once

#include <optional>

#include "cli/resolve.h"
#include "model/memory_table.h"

namespace penstock::cli {

// memory.limit in bytes; nothing when it is empty. Throws InputError when it is no number of bytes.
std::optional<Bytes> memory_limit(const schedule::MemoryOptions& options);

// Puts the cheapest policy that fits, in the order none, balanced, balanced+fc1, full, in the place of
// memory.policy = "auto", and says so in run.memory_note; without a limit that is none. Throws NoAnswer when
// none fits.
void choose_policy(ResolvedRun& run);

// Throws NoAnswer when the prediction of a device exceeds memory.limit: names the device, the largest
// category, and the settings that would fit.
void require_fit(const ResolvedRun& run, const model::MemoryTable& predicted);

}  // namespace penstock::cli
