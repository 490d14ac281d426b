// SPDX-License-Identifier: Apache-2.0
// Context exchange of a run: may it be, what moves, and how many bytes.
#pragma once

#include "cli/resolve.h"
#include "model/memory_table.h"
#include "schedule/passes/exchange.h"

namespace penstock::cli {

// Throws InputError naming the constraint and the nearest legal values when schedule.exchange asks for help
// that the run's schedule or layers have no place for.
void check_exchange(const ResolvedRun& run);

// The pass's settings; the run outlives them.
schedule::ContextExchange exchange_of(const ResolvedRun& run);

// Buffers of a device, at most: a device has one op of its own under way, all of whose helpers it asks for a
// layer at once, and may serve all its owners at the same time, each in its own slot, one layer after
// another.
Bytes help_buffers(const ResolvedRun& run, const schedule::Program& program, int device);

// What its attention for others takes beside these while it computes, at most: it serves one after another,
// at any boundary of its own operations.
Bytes help_temporaries(const ResolvedRun& run, const schedule::Program& program, int device);

}  // namespace penstock::cli
