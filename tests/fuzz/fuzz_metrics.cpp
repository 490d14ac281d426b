// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl, as the report, supervise and a resumed run read it.
#include <algorithm>
#include <functional>
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
  add_metrics(input, "fuzz", run);
  const std::size_t lines = split(input, '\n').size();
  for (const report::Metric& metric : run.metrics) {
    if (metric.values.empty() || metric.values.size() != metric.steps.size() || metric.values.size() > lines)
      throw std::logic_error("a curve's values are not of its steps");
    if (std::ranges::adjacent_find(metric.steps, std::greater_equal()) != metric.steps.end())
      throw std::logic_error("a curve has a step twice, or not in order");
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
