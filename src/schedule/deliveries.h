// SPDX-License-Identifier: Apache-2.0
// Which receive of a program gets what a send sends.
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

// Sends and receives of one (source, destination, channel) matched in order, by source and then by send; what
// is left without its other half is left out.
std::vector<Delivery> deliveries_of(const Program& program);

}  // namespace penstock::schedule
