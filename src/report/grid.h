// SPDX-License-Identifier: Apache-2.0
// A schedule as text: one line per device, time to the right, tokens as in the CSV.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "report/layout.h"
#include "schedule/check/check.h"
#include "schedule/schedule.h"

namespace penstock::report {

struct GridOptions {
  using Signs = std::map<std::pair<int, int>, char>;  // by device and position
  UnitTimes times;
  bool colour = false;   // ANSI escapes: a background for each kind
  Signs signs = {};      // appended to the tokens of these actions
  int most_columns = 0;  // characters per line; a longer grid continues in further blocks. 0: no limit
};

// In time (layout.h), or by position if the schedule cannot run to its end. "." is an idle unit, "=" fills an
// action of several units. Throws InputError if it would be longer than anybody reads.
std::string grid(const schedule::Schedule& schedule, const GridOptions& options = {});

// Draws by position, with the cells of findings marked as in >3F2<. Shows only blocks with a marked cell; the
// first block if no finding has a cell.
std::string marked_grid(const schedule::Schedule& schedule, std::span<const schedule::Finding> findings,
                        const GridOptions& options = {});

}  // namespace penstock::report
