// SPDX-License-Identifier: Apache-2.0
// Building blocks of most generators: the units of a step, their order on a device, and the merge of forwards
// and backwards into warm-up, steady state and cool-down.
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
using Groups = std::vector<std::span<const Unit>>;  // views into a Units that must outlive them
using Order = std::vector<Action>;                  // the actions of one device, in order

// Returns a schedule for the request with one empty row per device; generate() sets the name.
Schedule empty_schedule(const Request& request, int stages);

// Micro-batches ascend; slices go first to last in the forward, last to first in the backward.
Units forward_units(const Request& request);
Units backward_units(const Request& request);

// All units as one group; groups of `size` units (the last may be smaller); groups of the given sizes.
Groups one_group(const Units& units);
Groups groups_of(const Units& units, int size);
Groups groups_of(const Units& units, std::span<const int> sizes);

// The stages of a device, first chunk first: rank, rank + p, ..., rank + (v-1)p.
std::vector<int> looped_stages(int rank, int devices, int chunks);

// Order by group, then by chunk (backward: last chunk first), then by unit.
Order forward_order(const Groups& groups, std::span<const int> stages);
Order backward_order(const Groups& groups, std::span<const int> stages);

// For each micro-batch: its n slices plus `lead`.
std::vector<int> in_flight_targets(const Request& request, int lead);

// 1. Warm-up: forwards until the target number in flight (forward done, backward not) is reached.
// 2. Steady state: strictly one backward, one forward.
// 3. Cool-down: the remaining backwards.
// targets[j] applies from the first forward of micro-batch j on; the target never falls. It applies `early`
// forwards sooner on a device that must change its target together with device 0, which is that far ahead. A
// target above the number of forwards means no steady state.
Order one_forward_one_backward(const Order& forwards, const Order& backwards, std::span<const int> targets,
                               int early = 0);

// All forwards, then all backwards.
Order all_forwards_first(const Order& forwards, const Order& backwards);

// Zero bubble: every B becomes an I. As soon as more than `delay` W are pending, the oldest follows; the rest
// comes last.
Order split_backwards(const Order& order, int delay);

}  // namespace penstock::schedule
