// SPDX-License-Identifier: Apache-2.0
// Is the help of a program help that can be given? Both devices run what it says in one slot, in which all
// devices run the same kind of work; nobody gives and takes in one slot; what moves is of earlier slices
// alone, from the oldest on, each half once.
//
// Help cannot deadlock what is no deadlock without it: an owner waits for its helpers alone, and a device
// that waits, for whatever reason, serves.
#pragma once

#include "schedule/check_findings.h"
#include "schedule/check_ops.h"

namespace penstock::schedule {

void find_bad_help(const OpTable& table, Findings& findings);

}  // namespace penstock::schedule
