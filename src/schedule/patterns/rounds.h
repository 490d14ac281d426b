// SPDX-License-Identifier: Apache-2.0
// Interleaving in rounds, shared by `interleaved` and `seq1f1b-interleaved`.
#pragma once

#include <string_view>

#include "schedule/request.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// A round is a group of whole micro-batches with at least p units where m allows it; a device runs all units
// of a round through its first chunk, then through its second, and so on. Throws InputError, in the name of
// `schedule`, unless all rounds have equally many micro-batches.
Schedule interleave_in_rounds(const Request& request, std::string_view schedule);

}  // namespace penstock::schedule
