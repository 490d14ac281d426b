// SPDX-License-Identifier: Apache-2.0
// Turns the records in a run directory into curves and tables of its report. The files may have been changed
// since, so their content is not trusted. `path` names them in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace penstock::cli {

// Adds a curve for each metric in metrics.jsonl and the last recorded expert load. Returns a remark on lines
// that train::lines_of_steps() leaves out; empty if there are none.
std::string add_metrics(std::string_view text, const std::string& path, report::Run& run);

// Adds from summary.json the predicted and measured bytes of each device, the hidden shares of copies and
// collectives, and the time of each rank for equal work. Throws InputError if it is not a JSON object.
void add_summary(std::string_view text, const std::string& path, report::Run& run);

// Adds from attempts.json why each attempt ended, how long each recovery took, and how the time was used.
// Returns false if it has no attempts.
bool add_attempts(std::string_view text, report::Run& run);

}  // namespace penstock::cli
