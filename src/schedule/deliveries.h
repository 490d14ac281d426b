// SPDX-License-Identifier: Apache-2.0
// Matches the sends of a program with their receives.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

struct Delivery {
  std::int32_t source = 0;
  std::int32_t destination = 0;
  std::uint32_t send = 0;     // index into the source's ops
  std::uint32_t receive = 0;  // index into the destination's ops
};

// Matches the sends and receives of each (source, destination, channel) in order. The result is sorted by
// source, then by send; unmatched ops are left out.
std::vector<Delivery> deliveries_of(const Program& program);

}  // namespace penstock::schedule
