// SPDX-License-Identifier: Apache-2.0
// Report sections of a plan.
#pragma once

#include "plan/plan_print.h"
#include "report/report.h"

namespace penstock::cli {

// Least time by memory, memory by category and time by term of the best candidates, rejections by kind, and
// the first candidate's memory per device, with its timeline if plans are simulated. The plan must have a
// candidate.
report::Report plan_report(const plan::Plan& plan);

}  // namespace penstock::cli
