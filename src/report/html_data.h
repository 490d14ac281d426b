// SPDX-License-Identifier: Apache-2.0
// A report as the JSON value that a page's script draws.
//
// {"title", "kinds": [{"word", "key", "lane", "colour"}], "compute": [kind..], "series": [colour..],
//  "more": [colour..], "lines": [colour..],
//  "runs": [{"name", "stages", "slices", "configuration", "notes", "tables", "metrics",
//            "heatMaps", "sliceNotes",
//            "devices", "rows": [name..] or [], "groups": [{"name", "of": [group of each row]}],
//            "program": see html_program.h, null when no timeline of it is drawn op by op,
//            "tracks": [{"label", "measured", "makespan", "tick", "events" | "shares" and "slots",
//                        "busy": [device][compute kind] seconds, "counts": likewise, "memory", "idle"}]}],
//  "bars", "points": see html_charts.h}
#pragma once

#include <string>

#include "report/html.h"
#include "report/report.h"

namespace penstock::report {

std::string report_json(const Report& report, const HtmlLimits& limits);

}  // namespace penstock::report
