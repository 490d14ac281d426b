// SPDX-License-Identifier: Apache-2.0
// The rule about messages: per (source, destination, channel) the k-th send and the k-th receive are of the
// same thing.
#pragma once

#include <vector>

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// [cell] the op on the other device that a transfer meets; kNoCell for the others.
using Partners = std::vector<Cell>;

// Adds what does not match (Unmatched), one finding for each (source, destination, channel).
Partners match_messages(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
