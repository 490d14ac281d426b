// SPDX-License-Identifier: Apache-2.0
// The slots of a schedule whose devices run in lock step: in every slot each device runs at most one forward,
// then at most one backward (docs/slimpipe.md, "How it works"). Vocabulary parallelism and context exchange
// are planned on these slots.
#pragma once

#include <optional>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

// Forward item i of device r (the i-th F of its list) is in slot i + r. A backward item of the last device is
// in the slot of the F before it; without an F in between, each takes the next slot. Device r runs backward
// item i in the slot in which the last device runs item i + p - 1 - r. A W is in the slot of the op before
// it.
struct SlotGrid {
  std::vector<std::vector<int>> slot_of;  // [device][op], for a program of F, B, I and W only
};

// Returns nothing if the program has no such slots: the i-th item is not the same (chunk, micro-batch, slice)
// on all devices, stages do not loop over the devices, a device's list is not in slot order, or an input from
// another device is not made in an earlier slot. What is planned on slots can therefore not deadlock. The
// program must be complete (schedule/check/check.h).
std::optional<SlotGrid> find_slot_grid(const Program& compute_only);

// A slot in which every device runs a forward, or every device a backward (B or I).
struct FullSlot {
  int number = 0;
  bool backward = false;
  std::vector<std::uint32_t> ops;  // [device]
};

// In order; in one slot the forwards come first.
std::vector<FullSlot> full_slots(const Program& compute_only, const SlotGrid& grid);

}  // namespace penstock::schedule
