// SPDX-License-Identifier: Apache-2.0
// A scored table of published throughput as a report: predicted against published for each engine, and the
// worst rows term by term.
#pragma once

#include "plan/published/score.h"
#include "report/report.h"

namespace penstock::cli {

// Throws InputError for other kinds of table.
report::Report score_report(const plan::Table& table, const plan::Score& score,
                            const plan::KnownMachines& known);

}  // namespace penstock::cli
