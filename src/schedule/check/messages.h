// SPDX-License-Identifier: Apache-2.0
// The rule about messages: per (source, destination, channel), the k-th send and the k-th receive have the
// same content.
#pragma once

#include <vector>

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// [cell] the matching transfer on the other device; kNoCell for other ops.
using Partners = std::vector<Cell>;

// Adds one finding (Unmatched) per (source, destination, channel) that does not match.
Partners match_messages(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
