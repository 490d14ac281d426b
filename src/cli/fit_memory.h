// SPDX-License-Identifier: Apache-2.0
// Does a run fit in memory.limit, and with which policy and share of offloading? Asked of predictions, before
// anything starts.
#pragma once

#include <optional>

#include "cli/resolve.h"
#include "model/memory_table.h"

namespace penstock::cli {

// memory.limit in bytes; nothing when it is empty. Throws InputError when it is no number of bytes.
std::optional<Bytes> memory_limit(const schedule::MemoryOptions& options);

// Puts the cheapest policy that fits, in the order none, balanced, balanced+fc1, full, in the place of
// memory.policy = "auto", and the least share that fits, in whole percent, in the place of memory.offload =
// "auto": where both are, the cheapest policy that fits with any share, with its least. Says so in
// run.memory_note; without a limit it is none and 0. Throws NoAnswer when nothing fits.
void choose_memory(ResolvedRun& run);

// Whether the prediction of every device is within memory.limit.
bool fits(const ResolvedRun& run);

// Throws NoAnswer when the prediction of a device exceeds memory.limit: names the device, the largest
// category, and the settings that would fit.
void require_fit(const ResolvedRun& run, const model::MemoryTable& predicted);

}  // namespace penstock::cli
