// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/deadlock.h"

#include <algorithm>
#include <string>
#include <vector>

#include "schedule/check/run.h"
#include "schedule/check/wording.h"

namespace penstock::schedule {
namespace {

int next_in_circle(const UnitTable& table, const ScheduleRun& run, int device) {
  return table.place(run.waits_for(device)).device;
}

// Every stuck device waits for a stuck one, so following the waits ends in a cycle.
std::vector<int> find_circle(const UnitTable& table, const ScheduleRun& run) {
  int device = 0;
  while (run.waits_for(device) == kNoCell) ++device;
  for (int step = 0; step < table.schedule().device_count(); ++step)
    device = next_in_circle(table, run, device);
  std::vector<int> circle{device};
  for (int next = next_in_circle(table, run, device); next != device;
       next = next_in_circle(table, run, next)) {
    circle.push_back(next);
  }
  std::ranges::sort(circle);
  return circle;
}

std::string describe_wait(const UnitTable& table, const ScheduleRun& run, const Wording& wording,
                          int device) {
  const Cell need = run.waits_for(device);
  const Cell blocker = run.stands_at(table.place(need).device);
  std::string text = " waits for " + wording.token(need) + " (" + wording.where(need) + ')';
  if (blocker != need)
    text += ", which comes after " + wording.token(blocker) + " (" + wording.where(blocker) + ')';
  return text + ", which waits in the same cycle";
}

}  // namespace

void find_deadlock(const UnitTable& table, Findings& findings) {
  ScheduleRun run(table);
  if (run.run([](int, Cell, Cell) {})) return;
  const Wording wording(table);
  for (const int device : find_circle(table, run)) {
    if (findings.full()) return;
    findings.add(
        wording.located(Rule::Deadlock, run.stands_at(device), describe_wait(table, run, wording, device)));
  }
}

}  // namespace penstock::schedule
