// SPDX-License-Identifier: Apache-2.0
// Checks whether a schedule or program is legal. check() reports findings, not exceptions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

enum class Rule {
  Missing,    // an F, B, I or W that no device runs
  Duplicate,  // an action that runs twice
  Mixed,      // a (stage, micro-batch, slice) with both a B and an I or W
  Range,      // a number outside the schedule (a stage without the stages before it, ...)
  Home,       // a (stage, micro-batch) on two devices
  Order,      // on one device: an action before one of its dependencies
  Deadlock,   // across devices: actions wait for each other in a cycle
  Unmatched,  // program: a send without its receive, or in another order
  Residence,  // program: a record used while offloaded, or offloaded and never reloaded, ...
  Exchange,   // program: an exchange that its two devices, its op or its slot does not allow
};
std::string_view name_of(Rule rule);  // "missing", "duplicate", ...

struct Finding {
  Rule rule = Rule::Missing;
  int device = -1;    // -1 if no device has it
  int position = -1;  // cell in the device's row, -1 if there is none
  Action action;      // the action at fault; for Missing, the absent one
  std::string text;   // one sentence: what is wrong and what is missing
};

// The dependencies of a sliced pipeline (docs/slimpipe.md, "How it works"):
//   F(s,j,i) after F(s-1,j,i) and F(s,j,i-1);  B or I(s,j,i) after F(s,j,i), B or I(s+1,j,i), B or
//   I(s,j,i+1); W(s,j,i) after I(s,j,i).
// Return at most `limit` findings, the most informative first; empty means legal.
std::vector<Finding> check(const Schedule& schedule, std::size_t limit = 20);
std::vector<Finding> check(const Program& program, std::size_t limit = 20);

// Throws NoAnswer with the findings, one per line, if the schedule is not legal.
void require_legal(const Schedule& schedule);

// Throws InputError with `origin` (the program's file) and the first finding if the program is not legal.
void require_legal(const Program& program, const std::string& origin);

}  // namespace penstock::schedule
