// SPDX-License-Identifier: Apache-2.0
// Resolves "auto". Candidates are copies of the run with other settings, predicted and simulated; resolve()
// is not called again.
#pragma once

#include <functional>

#include "run/run.h"

namespace penstock::run {

// Resolves schedule.slices = 0 and schedule.chunks = 0 to the numbers with the fastest simulated step; of
// those within 1 % of it, to those with the least memory. Considers only numbers that fit memory.limit with
// the given policy, if any do and neither policy nor offload is "auto". Sets the options and returns a note
// on the choice, empty if neither is 0. Throws InputError if the schedule accepts no numbers.
std::string choose_slices(Options& options, const Machine& machine);
bool leaves_slices_open(const Options& options);

// For a schedule made for given costs (greedy). Without times in the options, each stage's time comes from
// the analytic model at run.machine.hardware, with the given policy ("auto": none). Without
// schedule.in_flight it may hold p micro-batches; with memory.limit, and neither policy nor offload "auto",
// the most up to 2p that fit. Sets the run's options, schedule and its note; other schedules stay.
void choose_order(Run& run);

// Resolves parallel.cp_mode = "auto" for several context ranks: the fastest of context_modes() in simulation,
// or the first within 1 % of it; "gather" only if the run then fits memory.limit with the given policy
// ("auto": none). Sets the run's options and note.
void choose_context(Run& run);

// Resolves memory.policy = "auto" to the first of none, balanced, balanced+fc1 and full that fits
// memory.limit, with the least offload that fits if that is also "auto"; without a limit, to none and 0. If
// nothing fits and parallel.shard is "auto" too, tries the same with sharded weights; else shard becomes
// "optimizer". Throws NoAnswer if nothing fits. Sets the run's options, keep, offload, states and note.
void choose_memory(Run& run);

// Resolves schedule.exchange = "auto" to the fastest of off, paired and levelled in simulation with the
// chosen memory policy; to off if exchange is impossible, gains less than 1 % or does not fit memory.limit.
// Sets the run's options, exchange and its note.
void choose_exchange(Run& run);

// Why a laid-out run cannot exchange; empty if it can.
std::string why_no_exchange(const Run& run);

// Throws NoAnswer when the prediction exceeds memory.limit on some device, naming the device, its largest
// category, and settings that fit.
void require_fit(const Run& run);

// The predicted peak of the fullest device.
Bytes greatest_total(const Run& run);

// Bytes that a run would need of some memory.
using BytesNeeded = std::function<Bytes(const Run&)>;

// For a run that needs more than `room` bytes: settings with which it needs at most `room`, and every device
// at most run.memory_limit: "memory.policy = "full" would fit with 2 GiB"; or why there are none.
std::string settings_that_fit(const Run& run, Bytes room, const BytesNeeded& needed = greatest_total);

// Whether the prediction of every device is within memory.limit.
bool fits(const Run& run);

// The same run with another policy on all layers without an entry of their own.
Run with_policy(Run run, model::Policy policy);

}  // namespace penstock::run
