// SPDX-License-Identifier: Apache-2.0
// Interleaving of chunks in rounds, shared by `interleaved` and `seq1f1b-interleaved`.
#pragma once

#include <algorithm>
#include <string_view>

#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// A round is a group of whole micro-batches with at least p units if m allows it.
struct Rounds {
  int least;  // micro-batches with p units: ceil(p / slices of the shortest micro-batch)

  int count(int micro_batches) const { return std::max(1, micro_batches / least); }
  bool equal(int micro_batches) const { return micro_batches % count(micro_batches) == 0; }
};

// A device runs all units of a round through its first chunk, then its second, and so on. Throws InputError
// with the name `schedule` unless all rounds have the same number of micro-batches.
Schedule interleave_in_rounds(const Request& request, std::string_view schedule);

}  // namespace penstock::schedule
