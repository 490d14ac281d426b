// SPDX-License-Identifier: Apache-2.0
// Speed of the event simulation: compute actions per second on one core. Generation and lowering are not
// counted. "timeline" is simulate(), which keeps the times of every op; bytes_per_action is what it holds
// when it ends, the program not counted. "figures" is evaluate() as `penstock simulate --json` calls it:
// makespan, bubbles, and of each device busy and idle time by cause, peak in flight and peak bytes (here
// none), without a timeline.
//
//   build/release/bin/simulate_benchmark --benchmark_filter=-Large

#include <benchmark/benchmark.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "sim/costs/unit.h"
#include "sim/result.h"
#include "sim/simulate.h"

namespace penstock::sim {
namespace {

using schedule::Program;

struct Size {
  int devices, micro_batches, slices, chunks;
};

Program program_of(const char* name, const Size& size) {
  return lower(schedule::generate(
      name, schedule::request(size.devices, size.micro_batches, size.slices, size.chunks)));
}

double count_actions(const Program& program) {
  double actions = 0;
  for (const schedule::DeviceProgram& device : program.devices) {
    for (const schedule::Op& op : device.ops) actions += is_action(op.kind);
  }
  return actions;
}

double count_ops(const Program& program) {
  double ops = 0;
  for (const schedule::DeviceProgram& device : program.devices) ops += static_cast<double>(device.ops.size());
  return ops;
}

void measure(benchmark::State& state, const Program& program, double bytes, auto&& simulated) {
  const double actions = count_actions(program);
  for (auto _ : state) benchmark::DoNotOptimize(simulated());
  state.counters["actions"] = actions;
  state.counters["actions_per_second"] =
      benchmark::Counter(actions, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes_per_action"] = bytes / actions;
}

void timeline(benchmark::State& state, const char* name, const Size& size) {
  const Program program = program_of(name, size);
  const UnitCosts costs({.transfer = 0.1});
  measure(state, program, count_ops(program) * sizeof(schedule::Event),
          [&] { return simulate(program, costs); });
}

void figures(benchmark::State& state, const char* name, const Size& size) {
  const Program program = program_of(name, size);
  const UnitCosts costs({.transfer = 0.1});
  measure(state, program, 0, [&] { return evaluate(program, costs, {.timeline = false}); });
}

// 33.5 million actions, about 100 million ops: needs 6 GiB of memory. n < p, so slimpipe cannot have v = 4
// here.
constexpr Size kLarge{256, 2048, 8, 4};

BENCHMARK_CAPTURE(timeline, 1f1b_p64_m4096, "1f1b", Size{64, 4096, 1, 1})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(figures, 1f1b_p64_m4096, "1f1b", Size{64, 4096, 1, 1})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(timeline, Large_p256_m2048_n8_v4, "seq1f1b-interleaved", kLarge)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(figures, Large_p256_m2048_n8_v4, "seq1f1b-interleaved", kLarge)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace penstock::sim
