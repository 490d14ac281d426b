// SPDX-License-Identifier: Apache-2.0
// summary.json, as the report and plan --from read it.
#include "cli/plan/rank_times.h"
#include "cli/report/run_record.h"
#include "fuzz/driver.h"

namespace {

void take(std::string_view input) {
  penstock::report::Run run;
  penstock::cli::add_summary(input, "fuzz", run);
  penstock::cli::times_in_summary(input, "fuzz");
}

}  // namespace

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, take); }
