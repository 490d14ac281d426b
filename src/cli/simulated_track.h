// SPDX-License-Identifier: Apache-2.0
// A simulation's result as the report shows it.
#pragma once

#include <string>

#include "report/report.h"
#include "sim/result.h"

namespace penstock::cli {

// Timeline, idle time by cause, and memory over time when the result has samples.
report::Track track_of(std::string label, const sim::Result& result);

// Totals of a result: a row per device.
report::Table device_table(std::string title, const sim::Result& result);

}  // namespace penstock::cli
