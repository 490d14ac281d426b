// SPDX-License-Identifier: Apache-2.0
// timeline.json next to its program.txt: the program, a line "---", the timeline. What was read and printed
// reads the same again, and can be averaged to costs.
#include <stdexcept>

#include "base/error.h"
#include "fuzz/driver.h"
#include "schedule/check/check.h"
#include "schedule/program_text.h"
#include "sim/costs/measured.h"
#include "train/record/step_timeline.h"

namespace penstock::train {
namespace {

constexpr std::string_view kLine = "\n---\n";

void take(std::string_view input) {
  const std::size_t end = input.find(kLine);
  if (end == input.npos) throw InputError("one part");
  const schedule::Program program = schedule::parse_program(input.substr(0, end), "fuzz");
  if (!schedule::check(program).empty()) throw InputError("an illegal program");
  const auto steps = parse_timelines(input.substr(end + kLine.size()), program, "fuzz");
  const std::string once = to_json(steps);
  if (to_json(parse_timelines(once, program, "fuzz")) != once)
    throw std::logic_error("printing and parsing are not inverse");
  for (const StepTimeline& step : steps)
    sim::average(program, step.timeline, sim::extent_of(program), "fuzz");
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::train::take); }
