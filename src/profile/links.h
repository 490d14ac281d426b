// SPDX-License-Identifier: Apache-2.0
// Messages between neighbouring ranks.
#pragma once

#include <string>
#include <vector>

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// With whom a rank exchanges messages: neighbours on its host, and equal places on neighbouring hosts; -1:
// nobody. Partners name each other.
struct MessagePartners {
  int here = -1, away = -1;
};
// `hosts`: of each rank, by name.
MessagePartners message_partners(const std::vector<std::string>& hosts, int rank);

// Seconds of a message of each size, of the compute device's memory, between partners (-1: this rank has
// none): half a round trip, all pairs at once. Non-decreasing in size. Zeros where nobody has a partner.
// Collective.
Numbers measure_messages(Recorder& recorder, const Sizes& sizes, int partner);

}  // namespace penstock::profile
