// SPDX-License-Identifier: Apache-2.0
// How many actions a second each generator makes, one core. The target is 5 million.
#include <benchmark/benchmark.h>

#include "schedule/generators/generator.h"

namespace {

using penstock::schedule::Generator;
using penstock::schedule::generators;
using penstock::schedule::Request;
using penstock::schedule::Schedule;

std::int64_t count_actions(const Schedule& schedule) {
  std::int64_t actions = 0;
  for (const auto& row : schedule.devices) actions += static_cast<std::int64_t>(row.size());
  return actions;
}

void make_schedule(benchmark::State& state, std::string_view name, const Request& request) {
  std::int64_t actions = 0;
  for (auto _ : state) {
    const Schedule schedule = penstock::schedule::generate(name, request);
    actions += count_actions(schedule);
  }
  state.counters["actions_per_second"] =
      benchmark::Counter(static_cast<double>(actions), benchmark::Counter::kIsRate);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Generator& generator : generators()) {
    const bool sliced = generator.sliced_sibling.empty();
    const Request request = penstock::schedule::request(32, sliced ? 32 : 1024, sliced ? 32 : 1);
    const std::string title = std::string(generator.name) + (sliced ? " p=32 m=32 n=32" : " p=32 m=1024");
    benchmark::RegisterBenchmark(title.c_str(), make_schedule, generator.name, request)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
