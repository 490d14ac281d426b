// SPDX-License-Identifier: Apache-2.0
// The slice groups of interleaved slimpipe.
#pragma once

namespace penstock::schedule {

// The automatic number of slices per group: the smallest divisor g >= p of n such that the g - p forwards
// before the next chunk's turn cover p sequential transfers of `transfer_in_forwards` each. Returns n if no
// divisor does (n leaves the most time), if v = 1 or if n < p.
int slice_group(int slices, int devices, int chunks, double transfer_in_forwards = 0);

}  // namespace penstock::schedule
