// SPDX-License-Identifier: Apache-2.0
// A timeline in a terminal: one line per device, the step from left to right.
#pragma once

#include <string>

#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct TerminalStyle {
  int width = 80;       // columns; at least 30
  bool colour = false;  // ANSI colours of palette.h; else letters only
  int devices = 40;     // if there are more: the first ones, and a line with the number left out
};

// Each column is an equal part of the step and shows the op that the device ran longest in it: F, B, I, W
// (micro-batch numbers if colours show the kinds), "+" for other work, blank for idle. To the right, the
// percentage of the step that the device was busy, including served context exchange; below, the times and a
// legend.
//
//   device 0 |FFFFFFFFBBBBFFBBBBFFBBBB ...|  86 %
//
// If there are collectives, each device has a second line for them, G and R (with colours: stages).
// Lines end with "\n". The timeline has one event per op of the program.
std::string terminal_timeline(const schedule::Program& program, const schedule::Timeline& timeline,
                              const TerminalStyle& style = {});

}  // namespace penstock::report
