// SPDX-License-Identifier: Apache-2.0
#include "run/resolve/shortened.h"

#include "run/arrange.h"
#include "run/costs.h"
#include "run/lowering.h"
#include "sim/simulate.h"

namespace penstock::run {

Run shortened(const Run& run) {
  constexpr std::int64_t kMicroBatches = 8;
  Run less = run;
  if (!run.options.schedule.file.empty() || run.schedule.micro_batches() <= kMicroBatches) return less;
  less.schedule = generate(run.options, kMicroBatches);
  less.slices = cuts_of(run.options, less.schedule.slices);
  return less;
}

Seconds simulated_seconds(const Run& run) {
  return sim::simulate(program_of(run), costs_of(run, run.machine.hardware)).timeline.makespan();
}

}  // namespace penstock::run
