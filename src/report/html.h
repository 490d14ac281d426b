// SPDX-License-Identifier: Apache-2.0
// The report as one HTML page that needs nothing else: no network, no other file. docs/reading_a_report.md
// shows its parts.
#pragma once

#include <cstddef>
#include <string>

#include "report/report.h"

namespace penstock::report {

// Limits on the detail of a page. A page of one program of 20,000 actions stays under 2 MB.
struct HtmlLimits {
  std::size_t detailed_ops = 125'000;  // over all timelines; further ones are drawn as shares of time
  std::size_t share_cells = 200'000;   // for such timelines: devices x time slots x kinds
  std::size_t memory_points = 60'000;  // over all memory curves; the maximum total of each slot is kept
  std::size_t metric_points = 2'000;   // per curve; the minimum and maximum of each slot are kept
};

// Escapes all text of the report. Each timeline must have the devices of its program and one event per op;
// memory must cover all devices or none (PENSTOCK_CHECK).
std::string html_page(const Report& report, const HtmlLimits& limits = {});

}  // namespace penstock::report
