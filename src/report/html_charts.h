// SPDX-License-Identifier: Apache-2.0
// The charts of a report as JSON, for assets/bars.js, points.js and heat.js.
//
// bars: {"title", "note", "unit": "seconds" | "bytes" | "count", "rows": [text..],
//        "parts": [{"name", "values": [number..]}]}
// points: {"title", "note", "x": name, "y": name, "xUnit", "yUnit", "compared",
//          "points": [{"name", "x", "y"}]}
//
// heat maps: {"title", "note", "row": name, "column": name, "values": [[number..]..]}
#pragma once

#include <string>

#include "report/report.h"

namespace penstock::report {

// Every part has one value for each row (PENSTOCK_CHECK).
std::string bar_chart_json(const BarChart& chart);
std::string point_chart_json(const PointChart& chart);
std::string heat_map_json(const HeatMap& map);

}  // namespace penstock::report
