// SPDX-License-Identifier: Apache-2.0
#include "sim/result.h"

#include <cmath>

#include "base/error.h"
#include "base/interruption.h"
#include "sim/costs/what_if.h"

namespace penstock::sim {
namespace {

double fraction(Seconds part, Seconds whole) { return whole > 0 ? part / whole : 0; }

void add_bubbles(Result& result) {
  Seconds busy = 0;
  double span_fractions = 0;
  for (const DeviceResult& device : result.devices) {
    busy += device.time.busy;
    span_fractions += fraction(device.time.idle_in_span(), device.time.span());
  }
  const auto devices = static_cast<double>(result.devices.size());
  result.bubble_fraction = fraction(result.makespan * devices - busy, result.makespan * devices);
  result.span_bubble_fraction = fraction(span_fractions, devices);
}

// Accounts during the simulation; returns nothing if that needs the timeline.
std::optional<Result> evaluate_in_passing(const schedule::Program& program, const Costs& costs,
                                          const ResultOptions& options) {
  if (options.timeline || (options.memory && costs.holds_bytes())) return {};
  std::optional<Summary> summary = summarize(program, costs);
  if (!summary || (options.memory && summary->moves_bytes)) return {};
  if (options.imbalance && !summary->equal_actions) return {};
  Result result{.name = program.name, .makespan = summary->makespan};
  for (int d = 0; d < program.device_count(); ++d)
    result.devices.push_back({summary->times[d], summary->in_flight[d], {}});
  add_bubbles(result);
  return result;
}

}  // namespace

Result account(const schedule::Program& program, schedule::Timeline timeline, const Costs& costs,
               const ResultOptions& options) {
  Result result;
  result.name = program.name;
  result.makespan = timeline.makespan();
  std::vector<DeviceTime> times = account_time(program, timeline);
  if (options.imbalance) split_imbalance(times, program, timeline, costs);
  for (int d = 0; d < program.device_count(); ++d) {
    allow_interruption();
    result.devices.push_back({times[d], count_in_flight(program.devices[d]), {}});
    if (!options.memory) continue;
    result.devices[d].memory = account_memory(program, timeline, d, costs, options.memory_samples);
  }
  add_bubbles(result);
  if (options.timeline) result.timeline = std::move(timeline);
  return result;
}

Result evaluate(const schedule::Program& program, const Costs& costs, const ResultOptions& options) {
  if (std::optional<Result> result = evaluate_in_passing(program, costs, options)) return *std::move(result);
  Simulation simulation = simulate(program, costs);
  if (!simulation.deadlock) return account(program, std::move(simulation.timeline), costs, options);
  Result result;
  result.name = program.name;
  result.deadlock = std::move(simulation.deadlock);
  return result;
}

void require_end(const Result& result) {
  if (result.deadlock) throw NoAnswer(result.name + ": does not run to its end: " + result.deadlock->text);
}

Result evaluate_changed(const schedule::Program& program, const Costs& costs,
                        const std::vector<std::string>& changes, const ResultOptions& options) {
  std::vector<Override> overrides;
  for (const std::string& change : changes)
    overrides.push_back(parse_override(change, program.device_count()));
  check_overrides(program, overrides);
  const WhatIf changed(costs, overrides, program.device_count());
  Result result = evaluate(program, changed, options);
  if (!std::isfinite(result.makespan) || !std::isfinite(result.bubble_fraction))
    throw InputError("the costs add up to more seconds than a number can hold; expected smaller ones");
  return result;
}

}  // namespace penstock::sim
