// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "run/arrange.h"
#include "run/costs.h"
#include "run/resolve/choose.h"
#include "run/settle.h"
#include "schedule/generators/greedy.h"

namespace penstock::run {
namespace {

using schedule::Op;
using schedule::OpKind;

// Mean transfer time of the hidden states between neighbours.
Seconds mean_transfer(const Run& run, const sim::AnalyticCosts& costs) {
  Seconds sum = 0;
  for (int device = 0; device + 1 < run.devices(); ++device) {
    const Op send{.kind = OpKind::SendForward, .peer = device + 1, .bytes = costs.bytes().hidden_bytes(0, 0)};
    const sim::Transfer transfer = costs.transfer(device, 0, send);
    sum += transfer.occupied + transfer.latency;
  }
  return run.devices() > 1 ? sum / (run.devices() - 1) : 0;
}

void take_times(Run& run) {
  ScheduleOptions& chosen = run.options.schedule;
  const sim::AnalyticCosts costs = costs_of(run, run.machine.hardware);
  const auto of_stages = [&](OpKind kind) {
    Numbers times;
    for (int stage = 0; stage < run.stages(); ++stage)
      times.push_back(
          costs.seconds(run.device_of_stage[stage], 0, {.key = schedule::make_key(stage), .kind = kind}));
    return times;
  };
  chosen.forward = of_stages(OpKind::Forward);
  chosen.input = of_stages(OpKind::BackwardInput);
  chosen.weight = of_stages(OpKind::BackwardWeight);
  chosen.transfer = mean_transfer(run, costs);
}

// Sets the schedule for the options' costs; returns where its order comes from.
std::string arrange_again(Run& run) {
  auto made = schedule::make_greedy(request_of(run.options, run.schedule.micro_batches()));
  run.schedule = std::move(made.schedule);
  return made.origin();
}

bool fits_with(Run run, std::int64_t micro_batches) {
  run.options.schedule.in_flight = static_cast<double>(micro_batches);
  arrange_again(run);
  return fits(run);
}

// The most micro-batches in flight with which the run fits, or p if none fits: then the run is refused later.
std::int64_t most_in_flight(const Run& run) {
  const std::int64_t p = run.devices();
  const MemoryOptions& memory = run.options.memory;
  if (!run.memory_limit || memory.policy == "auto" || memory.offload.is_auto()) return p;
  std::int64_t enough = 0, too_much = std::min<std::int64_t>(2 * p, run.schedule.micro_batches()) + 1;
  while (too_much - enough > 1) {
    const std::int64_t middle = (enough + too_much) / 2;
    (fits_with(run, middle) ? enough : too_much) = middle;
  }
  return enough > 0 ? enough : p;
}

}  // namespace

void choose_order(Run& run) {
  ScheduleOptions& chosen = run.options.schedule;
  if (!is_made_for_costs(chosen)) return;
  if (chosen.forward.empty()) take_times(run);
  if (chosen.in_flight == 0) chosen.in_flight = static_cast<double>(most_in_flight(run));
  run.add_note(Topic::Schedule, "order from " + arrange_again(run) + ", at most " +
                                    exact_number(chosen.in_flight) + " micro-batches in flight");
}

}  // namespace penstock::run
