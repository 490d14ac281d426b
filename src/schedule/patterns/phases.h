// SPDX-License-Identifier: Apache-2.0
// The pieces that most generators are composed of: the units of a step, their order on a device, and the
// merge of forwards and backwards into warm-up, steady phase and cool-down.
#pragma once

#include <span>
#include <vector>

#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// One slice of one micro-batch. An unsliced micro-batch is one unit.
struct Unit {
  std::int32_t micro_batch = 0;
  std::int16_t slice = 0;
};

using Units = std::vector<Unit>;
using Groups = std::vector<std::span<const Unit>>;  // views into a Units that outlives them
using Order = std::vector<Action>;                  // what one device runs, in order

// A schedule of the request with one empty row per device; generate() fills in the name.
Schedule empty_schedule(const Request& request, int stages);

// Micro-batches ascending; slices first to last going forward, last to first going backward.
Units forward_units(const Request& request);
Units backward_units(const Request& request);

// All units as one group; groups of `size` units each (the last may be smaller); groups of the given sizes.
Groups one_group(const Units& units);
Groups groups_of(const Units& units, int size);
Groups groups_of(const Units& units, std::span<const int> sizes);

// The stages of a device, first chunk first: rank, rank + p, ..., rank + (v-1)p.
std::vector<int> looped_stages(int rank, int devices, int chunks);

// Group after group; within a group chunk after chunk (backwards: last chunk first); within a chunk unit
// after unit.
Order forward_order(const Groups& groups, std::span<const int> stages);
Order backward_order(const Groups& groups, std::span<const int> stages);

// Of each micro-batch: its n slices and `lead` more.
std::vector<int> in_flight_targets(const Request& request, int lead);

// 1. Warm-up: forwards until the target of in-flight entries (run forward, not yet backward) is reached.
// 2. Steady phase: strictly one backward, one forward.
// 3. Cool-down: the remaining backwards.
// targets[j] holds from the moment micro-batch j is opened and never falls; `early` forwards before that for
// a device that must change pace together with device 0, which is that far ahead. A target beyond the number
// of forwards means no steady phase.
Order one_forward_one_backward(const Order& forwards, const Order& backwards, std::span<const int> targets,
                               int early = 0);

// All forwards, then all backwards.
Order all_forwards_first(const Order& forwards, const Order& backwards);

// Zero bubble: every B becomes an I and, as soon as more than `delay` of them are owed, the W of the oldest;
// the W still owed come last.
Order split_backwards(const Order& order, int delay);

}  // namespace penstock::schedule
