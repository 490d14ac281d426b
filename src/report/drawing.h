// SPDX-License-Identifier: Apache-2.0
// A picture of a pipeline, independent of its format: one row per device, one box per action, as in the
// papers.
#pragma once

#include <string>
#include <vector>

#include "report/layout.h"
#include "schedule/program.h"
#include "schedule/schedule.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct Box {
  int row = 0;
  double start = 0;
  double end = 0;
  schedule::OpKind kind = schedule::OpKind::Forward;
  double lightness = 1;  // later chunks of a device are darker (palette.h)
  std::string label;     // "<micro-batch>" or "<micro-batch>.<slice>"
  std::string hint;      // full description, shown on hovering
};

struct Drawing {
  std::string title;
  std::vector<std::string> rows;  // row names
  std::vector<Box> boxes;
  double end = 0;
  std::string unit;  // of start and end: "s", or what the numbers mean
};

// The target of a replica collective: "stage 2", or "the sharded vocabulary", whose number follows that of
// the last stage.
std::string unit_text(const schedule::Program& program, const schedule::Op& op);

// In unit times, or by position if the schedule cannot run to its end.
Drawing draw(const schedule::Schedule& schedule, const UnitTimes& times = {});

// Draws the compute lanes, and copies and collectives below them if there are any. `timeline` has one event
// per op of the program. In another unit than seconds, times are printed as numbers.
Drawing draw(const schedule::Program& program, const schedule::Timeline& timeline,
             const std::string& unit = "s");

}  // namespace penstock::report
