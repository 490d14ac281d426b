// SPDX-License-Identifier: Apache-2.0
// The rules of vocabulary parallelism (passes/vocabulary.h). A program without its ops satisfies all of them.
#pragma once

#include "schedule/check/findings.h"
#include "schedule/check/ops.h"

namespace penstock::schedule {

// Every slice has one LOSS on each device; on the last stage's device it is between F and B. For each slice,
// every device but stage 0's has the four embedding transfers with stage 0's device, and an EMBED_GRAD. F,
// EMBED_GRAD and the sends of gradients wait for their inputs. Adds Missing, Duplicate, Range, Home, Order.
void find_bad_vocabulary(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
