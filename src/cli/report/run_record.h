// SPDX-License-Identifier: Apache-2.0
// What a run recorded in its directory, as curves and tables of its report. The files may have been changed
// since, so that nothing in them is trusted; `path` names them in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace penstock::cli {

// Of metrics.jsonl: a curve for each metric in any line, and the last step's load of experts. Returns what to
// tell: lines that are no step's are left out, silently a last one without an end, which a run may still be
// writing.
std::vector<std::string> add_metrics(std::string_view text, const std::string& path, report::Run& run);

// Of summary.json: predicted and measured bytes of each device, and the shares of copies and collectives that
// were hidden. Throws InputError.
void add_summary(std::string_view text, const std::string& path, report::Run& run);

// Of attempts.json: why each attempt ended, how long each recovery took, and what became of the time. False
// where it has no attempts.
bool add_attempts(std::string_view text, report::Run& run);

}  // namespace penstock::cli
