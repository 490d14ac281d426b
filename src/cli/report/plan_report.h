// SPDX-License-Identifier: Apache-2.0
// Report sections of a plan.
#pragma once

#include "plan/plan_print.h"
#include "report/report.h"

namespace penstock::cli {

// Least time by memory, memory by category and time by term of the best candidates, rejections by kind, and
// the memory of the first candidate's devices with its timeline, where plans are simulated. The plan has at
// least one.
report::Report plan_report(const plan::Plan& plan);

}  // namespace penstock::cli
