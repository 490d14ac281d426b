// SPDX-License-Identifier: Apache-2.0
// How many actions a second each generator makes, one core. The target is 5 million. Greedy's time depends on
// the costs it is given: at F = I = W it finds at once a pattern that nothing can improve; others are a
// search.
#include <benchmark/benchmark.h>

#include "schedule/generators/greedy.h"

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

struct GreedyCase {
  const char* times;
  penstock::Seconds forward, input, weight, transfer;
  double spread;  // of the stages' times, as measured ones have
};
constexpr GreedyCase kGreedyCases[] = {{"1:1.2:0.8 transfer 0.1", 1, 1.2, 0.8, 0.1, 0},
                                       {"1:1.38:0.75", 1, 1.375, 0.75, 0, 0},
                                       {"1:1.75:0.5", 1, 1.75, 0.5, 0, 0},
                                       {"1:2.13:0.25 transfer 0.1", 1, 2.125, 0.25, 0.1, 0},
                                       {"1:1.38:0.75 stages differ by 10 %", 1, 1.375, 0.75, 0.1, 0.1}};

Request greedy_request(const GreedyCase& costs, int chunks, int memory) {
  constexpr int kDevices = 32;
  Request request = penstock::schedule::request(kDevices, 1024, 1, chunks);
  for (int stage = 0; stage < kDevices * chunks; ++stage) {
    const double factor = 1 + costs.spread * (stage * 7 % 11) / 10;
    request.costs.forward.push_back(costs.forward * factor);
    request.costs.input.push_back(costs.input * factor);
    request.costs.weight.push_back(costs.weight * factor);
  }
  request.costs.transfer = costs.transfer;
  request.costs.limit = memory * kDevices * chunks;
  return request;
}

void register_greedy() {
  for (const GreedyCase& costs : kGreedyCases) {
    for (const int chunks : {1, 2}) {
      for (const int memory : {1, 2}) {
        const std::string title = "greedy p=32 m=1024 v=" + std::to_string(chunks) + " F:I:W=" + costs.times +
                                  " memory " + std::to_string(memory) + "x1f1b";
        benchmark::RegisterBenchmark(title.c_str(), make_schedule, "greedy",
                                     greedy_request(costs, chunks, memory))
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
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
  register_greedy();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
