// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl, as the report, supervise and a resumed run read it.
#include <stdexcept>

#include "base/text.h"
#include "cli/plan/rank_times.h"
#include "cli/report/run_record.h"
#include "cli/supervise/attempts.h"
#include "fuzz/driver.h"
#include "train/record/start_mesh.h"

namespace penstock::cli {
namespace {

void take(std::string_view input) {
  report::Run run;
  const auto left_out = add_metrics(input, "fuzz", run);
  if (left_out.size() >= split(input, '\n').size())
    throw std::logic_error("more lines left out than there are");
  for (const report::Metric& metric : run.metrics) {
    if (metric.values.empty() || metric.values.size() != metric.steps.size())
      throw std::logic_error("a curve's values are not of its steps");
  }
  const Recorded recorded = recorded_in(std::string(input));
  if (!recorded.start.steps.empty() && recorded.start.steps.back().step != recorded.last_step)
    throw std::logic_error("the last step is of no start");
  const Attempt attempt{.seconds = 1, .steps = recorded.start.steps};
  with_time_use(std::string(input), to_json({attempt, attempt}, std::string(input)));
  const RankTimes times = times_in_metrics(input, "fuzz");
  train::mesh_of_step(input, recorded.last_step, "fuzz");
  if (times && times->empty() && input.find("[]") == input.npos) throw std::logic_error("times of no rank");
}

}  // namespace
}  // namespace penstock::cli

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::cli::take); }
