// SPDX-License-Identifier: Apache-2.0
// The slots of a schedule whose devices keep step: in every slot all devices run a forward, then all run a
// backward, as far as they have one (docs/slimpipe.md, "How it works"). Vocabulary parallelism and context
// exchange are laid out on them.
#pragma once

#include <optional>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

// Device r's forward item i (the i-th F of its list) is in slot i + r. Backward items of the last device are
// in the slot of the F before them, one slot after another where no F stands between; device r runs item i
// where the last device runs item i + p - 1 - r. W are in the slot of what stands before them.
struct SlotGrid {
  std::vector<std::vector<int>> slot_of;  // [device][op] of a program of F, B, I and W alone
};

// Nothing when the program has no such slots: an item that is another (chunk, micro-batch, slice) on some
// device, stages that do not follow the devices in a loop, or a device whose list is not in the order of
// slots.
std::optional<SlotGrid> find_slot_grid(const Program& compute_only);

}  // namespace penstock::schedule
