// SPDX-License-Identifier: Apache-2.0
// The text form of programs, and check() on whatever was read.
#include <stdexcept>

#include "fuzz/driver.h"
#include "schedule/check/check.h"
#include "schedule/program_text.h"

namespace penstock::schedule {
namespace {

void take(std::string_view input) {
  const Program program = parse_program(input, "fuzz");
  Program again = parse_program(to_text(program), "fuzz");
  again.name = program.name;  // printing makes the control bytes of a name visible
  if (!(again == program)) throw std::logic_error("printing and parsing are not inverse");
  for (const Finding& finding : check(program)) {
    if (finding.text.empty()) throw std::logic_error("a finding without text");
  }
}

}  // namespace
}  // namespace penstock::schedule

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::schedule::take); }
