// SPDX-License-Identifier: Apache-2.0
// The schedule's CSV and everything that is done with what was read: printing, judging, showing, lowering.
#include <stdexcept>

#include "fuzz/driver.h"
#include "report/grid.h"
#include "schedule/check/check.h"
#include "schedule/passes/lower.h"
#include "schedule/plain_legality.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

constexpr std::int64_t kMostPlain = 4096;  // units that the plain judgement takes in good time

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

void judge(const Schedule& schedule) {
  const std::vector<Finding> findings = check(schedule);
  for (const Finding& finding : findings) expect(!finding.text.empty(), "a finding without text");
  std::int64_t units = 0;
  for (const int n : schedule.slices) units += static_cast<std::int64_t>(n) * schedule.stages;
  if (units <= kMostPlain) {
    expect(findings.empty() == plainly_legal(schedule), "check() and the plain judgement differ");
  }
  report::marked_grid(schedule, findings, {.most_columns = 120});
  report::grid(schedule);
  if (findings.empty())
    expect(check(lower(schedule)).empty(), "a legal schedule lowered to an illegal program");
}

void take(std::string_view input) {
  const Schedule schedule = parse_csv(input, "fuzz");
  expect(parse_csv(to_csv(schedule), "fuzz") == schedule, "printing and parsing are not inverse");
  to_json(schedule);
  judge(schedule);
}

}  // namespace
}  // namespace penstock::schedule

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::schedule::take); }
