// SPDX-License-Identifier: Apache-2.0
// Speed of the event simulation: compute actions per second on one core. Generation and lowering are not
// counted; bytes_per_action is what simulate() itself holds when it ends, the program not counted.
//
//   build/release/bin/simulate_benchmark --benchmark_filter=-Large

#include <benchmark/benchmark.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "sim/costs/unit.h"
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

void simulate_program(benchmark::State& state, const char* name, const Size& size) {
  const Program program = program_of(name, size);
  double actions = 0, bytes = 0;
  for (const schedule::DeviceProgram& device : program.devices) {
    for (const schedule::Op& op : device.ops) actions += is_action(op.kind);
    bytes += static_cast<double>(device.ops.size()) * sizeof(schedule::Event);
  }
  const UnitCosts costs({.transfer = 0.1});
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, costs));
  state.counters["actions"] = actions;
  state.counters["actions_per_second"] =
      benchmark::Counter(actions, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes_per_action"] = bytes / actions;
}

BENCHMARK_CAPTURE(simulate_program, 1f1b_p64_m4096, "1f1b", Size{64, 4096, 1, 1})
    ->Unit(benchmark::kMillisecond);
// 33.5 million actions, about 100 million ops: needs 6 GiB of memory. n < p, so slimpipe cannot have v = 4
// here.
BENCHMARK_CAPTURE(simulate_program, Large_p256_m2048_n8_v4, "seq1f1b-interleaved", Size{256, 2048, 8, 4})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace penstock::sim
