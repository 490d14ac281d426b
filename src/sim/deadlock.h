// SPDX-License-Identifier: Apache-2.0
// Words for a deadlock.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/simulate.h"

namespace penstock::sim {

inline constexpr std::uint32_t kNoOp =
    static_cast<std::uint32_t>(-1);  // in place of the op that a device waits for

// Follows the first stalled device to the one it waits for, and so on until a device comes up twice or is
// through.
Deadlock describe(const schedule::Program& program, std::vector<Stall> stalls);

}  // namespace penstock::sim
