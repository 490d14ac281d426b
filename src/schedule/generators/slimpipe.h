// SPDX-License-Identifier: Apache-2.0
// Groups of slices of interleaved slimpipe.
#pragma once

namespace penstock::schedule {

// Slices per group where none is asked for: the smallest divisor of n that is at least p and leaves the
// messages of a turn to the next chunk time to fly, g - p forwards for p transfers of `latency` forwards, one
// after the other. n, which leaves most, when none does; n too if v = 1 or n < p.
int slice_group(int slices, int devices, int chunks, double latency = 0);

}  // namespace penstock::schedule
