// SPDX-License-Identifier: Apache-2.0
// Resolves "auto". Candidates are copies of the run with other settings, predicted and simulated; nothing is
// resolved again.
#pragma once

#include <functional>

#include "run/run.h"

namespace penstock::run {

// schedule.slices = 0 or schedule.chunks = 0: the numbers with which a step is fastest in simulation; of
// those within 1 % of it, the ones that need least memory. Only such as fit memory.limit with the policy
// given, if any do and neither policy nor offload is "auto". Sets the options and returns a note of the
// choice; nothing where neither is 0. Throws InputError when the schedule takes none.
std::string choose_slices(Options& options, const Machine& machine);
bool leaves_slices_open(const Options& options);

// A schedule made for given costs (greedy): without times in the options it takes each stage's by the
// analytic model at run.machine.hardware, with the policy given ("auto": none). Without schedule.in_flight it
// may hold p micro-batches; with memory.limit, and neither policy nor offload "auto", the most up to 2p that
// fit. Sets the run's options, schedule and its note; other schedules stay.
void choose_order(Run& run);

// parallel.cp_mode = "auto", when asked for several context ranks: the fastest of context_modes() in
// simulation, the first of those within 1 % of it; "gather" only where the run then fits memory.limit with
// the policy given ("auto": none). Sets the run's options and note.
void choose_context(Run& run);

// memory.policy = "auto": the first of none, balanced, balanced+fc1 and full that fits memory.limit, with the
// least offload that fits if that is also "auto"; without a limit none and 0. Where nothing fits and
// parallel.shard is "auto" too, the same with passing weights; else that is "optimizer". Throws NoAnswer when
// nothing fits. Sets the run's options, keep, offload, states and note.
void choose_memory(Run& run);

// schedule.exchange = "auto": the fastest of off, paired and levelled in simulation with the chosen memory
// policy; off if exchange is impossible, gains less than 1 % or does not fit memory.limit. Sets the run's
// options, exchange and its note.
void choose_exchange(Run& run);

// Why a run that is laid out cannot exchange; empty if it can.
std::string why_no_exchange(const Run& run);

// Throws NoAnswer when the prediction exceeds memory.limit on some device, naming the device, its largest
// category, and settings that fit.
void require_fit(const Run& run);

// The predicted peak of the fullest device.
Bytes greatest_total(const Run& run);

// What a run would need of some memory.
using BytesNeeded = std::function<Bytes(const Run&)>;

// Of a run that needs more than `room` bytes: the settings with which it would need at most that, and every
// device at most run.memory_limit: "memory.policy = "full" would fit with 2 GiB", or why there are none.
std::string settings_that_fit(const Run& run, Bytes room, const BytesNeeded& needed = greatest_total);

// Whether the prediction of every device is within memory.limit.
bool fits(const Run& run);

// The same run with another policy on all layers without an entry of their own.
Run with_policy(Run run, model::Policy policy);

}  // namespace penstock::run
