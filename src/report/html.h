// SPDX-License-Identifier: Apache-2.0
// The report as one HTML page that needs nothing else: no network, no other file. docs/reading_a_report.md
// shows its parts.
#pragma once

#include <cstddef>
#include <string>

#include "report/report.h"

namespace penstock::report {

// Bounds of what a page draws action by action. A page of one program of 20,000 actions stays under 2 MB.
struct HtmlLimits {
  std::size_t detailed_ops = 125'000;  // over all timelines; those beyond are drawn as shares of time
  std::size_t share_cells = 200'000;   // of such timelines: devices x time slots x kinds
  std::size_t memory_points = 60'000;  // over all memory curves; the greatest total of each slot is kept
  std::size_t metric_points = 2'000;   // of each curve; the least and the greatest of each slot are kept
};

// Text of the report is shown as text, whatever markup it contains. Each timeline must have the devices of
// its program and one event per op; memory is of all devices or none (PENSTOCK_CHECK).
std::string html_page(const Report& report, const HtmlLimits& limits = {});

}  // namespace penstock::report
