// SPDX-License-Identifier: Apache-2.0
#include "cli/choose_exchange.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/exchange.h"
#include "cli/fit_memory.h"
#include "cli/plan_run.h"
#include "cli/run_costs.h"
#include "schedule/generators/generator.h"
#include "sim/simulate.h"

namespace penstock::cli {
namespace {

constexpr std::int64_t kMicroBatches = 8;  // simulated at most: more repeat the same slots
constexpr double kWorthwhile = 0.99;       // of the time without help: less is below what costs assume

// The same run with fewer micro-batches.
ResolvedRun shortened(const ResolvedRun& run) {
  ResolvedRun less = run;
  const schedule::ScheduleOptions& chosen = run.options.schedule;
  if (!chosen.file.empty() || run.schedule.micro_batches() <= kMicroBatches) return less;
  schedule::Request request{.devices = run.schedule.device_count(),
                            .chunks = static_cast<int>(chosen.chunks),
                            .group = static_cast<int>(chosen.group)};
  request.slices.assign(kMicroBatches, static_cast<int>(chosen.slices));
  less.schedule = schedule::generate(chosen.name, request);
  less.options.train.batch = kMicroBatches * run.options.train.micro_batch;
  return less;
}

Seconds seconds_with(ResolvedRun& run, const RunCosts& costs, const std::string& exchange) {
  run.options.schedule.exchange = exchange;
  return sim::simulate(schedule::lower(run.schedule, lowering_of(run)), costs.costs()).timeline.makespan();
}

void take(ResolvedRun& run, const std::string& exchange, const std::string& why) {
  run.options.schedule.exchange = exchange;
  run.exchange_note = exchange + ": " + why;
}

}  // namespace

void choose_exchange(ResolvedRun& run) {
  if (run.options.schedule.exchange != "auto") return;
  if (run.schedule.device_count() == 1) return take(run, "off", "there is one device");
  try {
    check_exchange(run);
  } catch (const InputError& reason) {
    return take(run, "off", reason.what());
  }
  ResolvedRun simulated = shortened(run);
  const RunCosts costs(simulated);
  const Seconds off = seconds_with(simulated, costs, "off"),
                paired = seconds_with(simulated, costs, "paired"),
                levelled = seconds_with(simulated, costs, "levelled");
  const std::string seconds = print_seconds(off) + " without, " + print_seconds(paired) + " paired, " +
                              print_seconds(levelled) + " levelled, simulated for " +
                              std::to_string(simulated.schedule.micro_batches()) + " micro-batches";
  if (std::min(paired, levelled) >= kWorthwhile * off)
    return take(run, "off", "it gains less than 1 %: " + seconds);
  ResolvedRun chosen = run;
  take(chosen, paired <= levelled ? "paired" : "levelled", "the fastest: " + seconds);
  if (!fits(chosen))
    return take(run, "off", "with its messages the run does not fit in memory.limit: " + seconds);
  run = std::move(chosen);
}

}  // namespace penstock::cli
