// SPDX-License-Identifier: Apache-2.0
// Context exchange of a run: legality, messages and bytes.
#pragma once

#include "run/run.h"
#include "schedule/passes/exchange.h"

namespace penstock::run {

// Throws InputError with the constraint and the nearest legal values when the run's schedule or layers do not
// allow exchange.
void check_exchange(const Run& run);

// The settings of the pass; the run must outlive them.
schedule::ContextExchange exchange_of(const Run& run);

// Peak exchange buffers of a device: one op of its own, which exchanges one layer with all its partners at
// once, and one layer for each owner that it serves.
Bytes exchange_buffers(const Run& run, const schedule::Program& program, int device);

// Peak temporaries of the attention computed for owners: the device serves one after another.
Bytes exchange_temporaries(const Run& run, const schedule::Program& program, int device);

// Throws InputError if the runtime cannot exchange although the schedule could: several logical shards on a
// rank, keys that context ranks gather, or documents with keys in two ranges.
void require_exchangeable(const Run& run);

}  // namespace penstock::run
