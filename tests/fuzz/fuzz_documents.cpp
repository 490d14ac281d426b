// SPDX-License-Identifier: Apache-2.0
// documents.json of a run of two micro-batches of two sequences.
#include <stdexcept>

#include "fuzz/driver.h"
#include "train/record/step_documents.h"

namespace penstock::train {
namespace {

run::Run small_run() {
  run::Run run;
  run.options.train.micro_batch = 2;
  run.options.schedule.slice_tokens = 8;
  run.schedule.slices = {1, 1};
  return run;
}

void take(std::string_view input) {
  static const run::Run kRun = small_run();
  const std::string once = to_json(parse_step_documents(input, kRun, "fuzz"));
  if (to_json(parse_step_documents(once, kRun, "fuzz")) != once)
    throw std::logic_error("printing and parsing are not inverse");
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::train::take); }
