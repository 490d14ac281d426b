// SPDX-License-Identifier: Apache-2.0
// Describes a deadlock in words.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/simulate.h"

namespace penstock::sim {

inline constexpr std::uint32_t kNoOp =
    static_cast<std::uint32_t>(-1);  // "no op" in place of the op that a device waits for

// Follows the waits from the first stalled device until a device comes up twice or has finished.
Deadlock describe(const schedule::Program& program, std::vector<Stall> stalls);

}  // namespace penstock::sim
