// SPDX-License-Identifier: Apache-2.0
// A timeline in a terminal: one line per device, the step from left to right.
#pragma once

#include <string>

#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct TerminalStyle {
  int width = 80;       // columns; narrower than 30 counts as 30
  bool colour = false;  // ANSI colours of palette.h; else letters alone
  int devices = 40;     // more devices than that: the first ones, and a line that says how many are left out
};

// Each column stands for an equal part of the step and shows what the device did longest in it: F, B, I, W
// (micro-batch numbers where colours tell the kinds), "+" for other work, blank for idle. Right of it the
// share of the step that the device was busy, with what it served of context exchange; below it the times and
// what the letters mean.
//
//   device 0 |FFFFFFFFBBBBFFBBBBFFBBBB ...|  86 %
//
// Where there are collectives, each device has a second line for them, G and R (with colours: stages).
// Lines end with "\n". The timeline has one event per op of the program.
std::string terminal_timeline(const schedule::Program& program, const schedule::Timeline& timeline,
                              const TerminalStyle& style = {});

}  // namespace penstock::report
