// SPDX-License-Identifier: Apache-2.0
// Schedules with controllable memory (Qi et al. 2024, arXiv 2405.15362): a building block, the four passes of
// one micro-batch through a V of two chunks a device, is repeated every six time units (F = I = W = 1), and
// then squeezed within the memory that the repetition needs.
#pragma once

#include <array>
#include <vector>

#include "schedule/generators/generator.h"

namespace penstock::schedule {

// Start times of micro-batch 0 on one device, all different modulo 6: forward of the first and of the second
// chunk, backward-input of the second and of the first. W has no place of its own: it fills what is left.
using Block = std::array<int, 4>;

// In unit time, each device runs the earliest pass of the repeated blocks whose inputs are there, or a W. At
// most `limit` chunks of micro-batches are between F and W on a device; it must be enough for the blocks as
// they stand. Of the two squeezes "in the blocks' order" and "a pass may overtake its predecessor" the
// shorter one is returned.
Schedule squeeze(const Request& request, const std::vector<Block>& blocks, int limit);

}  // namespace penstock::schedule
