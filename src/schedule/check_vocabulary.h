// SPDX-License-Identifier: Apache-2.0
// The rules of vocabulary parallelism (passes/vocabulary.h). A program without its ops satisfies them all.
#pragma once

#include <vector>

#include "schedule/check_findings.h"
#include "schedule/check_ops.h"

namespace penstock::schedule {

// [device] its LOSS ops in order; the k-th of all devices meet. All rows are empty when there are none.
using Visits = std::vector<std::vector<Cell>>;

// Every slice has one visit on each device, in the same order everywhere, on the last stage's device between
// F and B; every other device has the four transfers of each slice with the device of stage 0, and its
// EMBED_GRAD; F, EMBED_GRAD and the gradient's sends wait for what they need. Missing, Duplicate, Range,
// Home, Order, Unmatched.
Visits find_bad_vocabulary(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
