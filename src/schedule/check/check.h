// SPDX-License-Identifier: Apache-2.0
// Is a schedule, or a program, legal? Answers are findings, never exceptions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

enum class Rule {
  Missing,    // an F, B, I or W that no device runs
  Duplicate,  // one that runs twice
  Mixed,      // a (stage, micro-batch, slice) has both a B and an I or W
  Range,      // a number outside the schedule (a stage without the stages before it, ...)
  Home,       // a (stage, micro-batch) on two devices
  Order,      // on one device: an action before something it depends on
  Deadlock,   // across devices: actions wait for each other in a circle
  Unmatched,  // program: a send without its receive, or in another order
  Residence,  // program: used while offloaded, or offloaded and never reloaded, ...
  Exchange,   // program: exchange that its two devices, its op or its slot cannot give
};
std::string_view name_of(Rule rule);  // "missing", "duplicate", ...

struct Finding {
  Rule rule = Rule::Missing;
  int device = -1;    // -1: no device has it
  int position = -1;  // cell of that device's row; -1: none
  Action action;      // the one at fault; for Missing the one that is not there
  std::string text;   // one sentence: what is wrong and what is missing
};

// The dependencies of a sliced pipeline (docs/slimpipe.md, "How it works"):
//   F(s,j,i) after F(s-1,j,i) and F(s,j,i-1);  B or I(s,j,i) after F(s,j,i), B or I(s+1,j,i), B or
//   I(s,j,i+1); W(s,j,i) after I(s,j,i).
// At most `limit` findings, most telling first; an empty answer means legal.
std::vector<Finding> check(const Schedule& schedule, std::size_t limit = 20);
std::vector<Finding> check(const Program& program, std::size_t limit = 20);

// Throws NoAnswer with the findings, one per line, unless the schedule is legal.
void require_legal(const Schedule& schedule);

// Throws InputError that begins with `origin`, the program's file, and tells the first finding.
void require_legal(const Program& program, const std::string& origin);

}  // namespace penstock::schedule
