// SPDX-License-Identifier: Apache-2.0
// The rules of vocabulary parallelism (passes/vocabulary.h). A program without its ops satisfies them all.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// Every slice has one visit on each device, on the last stage's device between
// F and B; every other device has the four transfers of each slice with the device of stage 0, and its
// EMBED_GRAD; F, EMBED_GRAD and the gradient's sends wait for what they need. Missing, Duplicate, Range,
// Home, Order.
void find_bad_vocabulary(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
