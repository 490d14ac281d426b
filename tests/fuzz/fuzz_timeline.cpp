// SPDX-License-Identifier: Apache-2.0
// timeline.json next to its program.txt: the program, a line "---", the timeline. What was read and printed
// reads the same again, and can be averaged to costs.
#include <stdexcept>

#include "base/error.h"
#include "fuzz/driver.h"
#include "run/record/measured_run.h"
#include "sim/costs/measured.h"

namespace penstock::run {
namespace {

constexpr std::string_view kLine = "\n---\n";

void take(std::string_view input) {
  const std::size_t end = input.find(kLine);
  if (end == input.npos) throw InputError("one part");
  const auto [program, steps, typical] =
      parse_measured_run({input.substr(0, end), "fuzz"}, {input.substr(end + kLine.size()), "fuzz"});
  const std::string once = to_json(steps);
  if (to_json(parse_timelines(once, program, "fuzz")) != once)
    throw std::logic_error("printing and parsing are not inverse");
  for (const StepTimeline& step : steps)
    sim::average(program, step.timeline, sim::extent_of(program), "fuzz");
}

}  // namespace
}  // namespace penstock::run

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::run::take); }
