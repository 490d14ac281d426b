// SPDX-License-Identifier: Apache-2.0
// Report sections of a plan.
#pragma once

#include "plan/plan_print.h"
#include "report/report.h"

namespace penstock::cli {

// Least time by memory, memory by category and time by term of the best candidates, rejections by kind, and
// the simulated timeline of the first candidate with the memory of its devices. The plan has at least one.
report::Report plan_report(const plan::Plan& plan);

}  // namespace penstock::cli
