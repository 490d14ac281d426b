// SPDX-License-Identifier: Apache-2.0
// Measures messages between neighbouring ranks.
#pragma once

#include <string>
#include <vector>

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// The ranks that a rank exchanges messages with: its neighbour on its host, and the rank at the same place on
// the neighbouring host; -1: none. Partners name each other.
struct MessagePartners {
  int here = -1, away = -1;
};
// `hosts`: the host name of each rank.
MessagePartners message_partners(const std::vector<std::string>& hosts, int rank);

// Returns the seconds of a message of each size, in the compute device's memory, between partners (-1: this
// rank has none): half a round trip, all pairs at once. Non-decreasing in size. Zeros if no rank has a
// partner. Collective.
Numbers measure_messages(Recorder& recorder, const Sizes& sizes, int partner);

}  // namespace penstock::profile
