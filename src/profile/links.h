// SPDX-License-Identifier: Apache-2.0
// Messages between neighbouring ranks.
#pragma once

#include "profile/measurements.h"
#include "profile/recorder.h"

namespace penstock::profile {

// Seconds of a message of each size, of the compute device's memory, from a rank to the next: half a round
// trip, all pairs of ranks at once (0 and 1, 2 and 3, ...). Non-decreasing in size. Zeros on a world of one
// rank. Collective.
Numbers measure_messages(Recorder& recorder, const Sizes& sizes);

}  // namespace penstock::profile
