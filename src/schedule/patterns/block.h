// SPDX-License-Identifier: Apache-2.0
// The building block of schedules with controllable memory (Qi et al. 2024, arXiv 2405.15362): the passes of
// one micro-batch through a V with two chunks per device, repeated every six time units (F = I = W = 1).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace penstock::schedule {

enum Pass : std::uint8_t { DownForward, UpForward, UpBackward, DownBackward };
inline constexpr int kPasses = 4;

// Start time of each pass of micro-batch 0 on one device, all different modulo 6. Backward means I; W has no
// fixed time and fills the gaps.
using Block = std::array<int, kPasses>;

struct BlockStep {
  Pass pass;
  std::int32_t micro_batch;
};

// Returns the passes of all micro-batches in time order.
std::vector<BlockStep> repeat(const Block& block, int micro_batches);

}  // namespace penstock::schedule
