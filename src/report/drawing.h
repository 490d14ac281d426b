// SPDX-License-Identifier: Apache-2.0
// A picture of a pipeline, before it has a format: a row for each device, a box for each action, as in the
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
  std::string hint;      // the whole story, shown on hovering
};

struct Drawing {
  std::string title;
  std::vector<std::string> rows;  // their names
  std::vector<Box> boxes;
  double end = 0;
  std::string unit;  // of start and end: "s", or what the numbers mean
};

// What a collective of replicas is about: "stage 2", or "the sharded vocabulary", whose number is the one
// after the last stage's.
std::string unit_text(const schedule::Program& program, const schedule::Op& op);

// In unit times, or by position when the schedule cannot run to its end.
Drawing draw(const schedule::Schedule& schedule, const UnitTimes& times = {});

// The compute lanes of what ran, and under them the copies and the collectives where there are any;
// `timeline` has an event for every op of the program.
Drawing draw(const schedule::Program& program, const schedule::Timeline& timeline);

}  // namespace penstock::report
