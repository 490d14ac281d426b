// SPDX-License-Identifier: Apache-2.0
// Interleaved Seq1F1B, Sun et al. 2024: interleaved 1F1B whose unit is a slice, in rounds of k >= p units.
// In flight: min(m·n·v, (v-1)k + n + 2(p-r-1)). With n >= p a round is one micro-batch; the schedule is then
// SlimPipe with one group of n slices.
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/rounds.h"

namespace penstock::schedule {

Schedule seq1f1b_interleaved(const Request& request) {
  return interleave_in_rounds(request, "seq1f1b-interleaved");
}

}  // namespace penstock::schedule
