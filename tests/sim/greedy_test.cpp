// SPDX-License-Identifier: Apache-2.0
#include "schedule/generators/greedy.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "schedule/check/check.h"
#include "schedule/passes/lower.h"
#include "sim/costs/table.h"
#include "sim/result.h"

namespace penstock::sim {
namespace {

using schedule::greedy;
using schedule::GreedyOptions;
using schedule::OpKind;
using schedule::Placing;
using schedule::Schedule;

// Times for every stage, and the same as a simulator's costs.
struct Times {
  GreedyOptions options;
  CostTable table{TableExtent{}};
};

Times times_of(Placing placing, int p, const std::function<std::array<Seconds, 3>(int)>& of_stage,
               Seconds transfer) {
  const int stages = placing == Placing::V ? 2 * p : p;
  Times times{{.placing = placing, .transfer = transfer}, CostTable({stages, 1, p})};
  for (int stage = 0; stage < stages; ++stage) {
    const auto [f, i, w] = of_stage(stage);
    times.options.forward.push_back(f);
    times.options.input.push_back(i);
    times.options.weight.push_back(w);
    times.table.set_seconds(OpKind::Forward, stage, 0, f);
    times.table.set_seconds(OpKind::BackwardInput, stage, 0, i);
    times.table.set_seconds(OpKind::BackwardWeight, stage, 0, w);
    times.table.set_seconds(OpKind::Backward, stage, 0, i + w);
  }
  for (int from = 0; from < p; ++from) {
    for (int to = 0; to < p; ++to) times.table.set_link(from, to, {.latency = transfer});
  }
  return times;
}

Result run(const Schedule& plan, const Costs& costs) {
  return evaluate(lower(plan), costs, {.imbalance = false, .memory = false});
}

int peak_in_flight(const Result& result) {
  int peak = 0;
  for (const DeviceResult& device : result.devices) peak = std::max(peak, device.in_flight.peak);
  return peak;
}

std::vector<std::string> patterns(Placing placing) {
  if (placing == Placing::Even) return {"1f1b", "zb-h1", "zb-h2"};
  return {"zb-v", "v-half", "v-min", "dualpipe-v"};
}

TEST(Greedy, IsNeverSlowerThanAPatternThatHoldsNoMore) {
  for (const Placing placing : {Placing::Even, Placing::V}) {
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int m : {1, 4, 8, 17}) {
        for (const double attention : {0.0, 0.25, 0.5, 0.75}) {
          const auto of_stage = [&](int) {
            return std::array{1.0, 1 - attention + 2.5 * attention, 1 - attention};
          };
          for (const Seconds transfer : {0.0, 0.3}) {
            const Times times = times_of(placing, p, of_stage, transfer);
            for (const std::string& name : patterns(placing)) {
              const Result pattern = run(generate(name, schedule::request(p, m)), times.table);
              GreedyOptions options = times.options;
              options.limit = peak_in_flight(pattern);
              const Result made = run(greedy(schedule::request(p, m), options), times.table);
              EXPECT_LE(made.makespan, pattern.makespan + 1e-9) << name << " p " << p << " m " << m;
              EXPECT_LE(peak_in_flight(made), options.limit);
            }
          }
        }
      }
    }
  }
}

TEST(Greedy, FindsZbVWithoutIdleTimeInTheSpansAtUnitTimes) {
  const Times times = times_of(
      Placing::V, 4,
      [](int) {
        return std::array{1.0, 1.0, 1.0};
      },
      0);
  const Result made = run(greedy(schedule::request(4, 12), times.options), times.table);
  EXPECT_EQ(made.span_bubble_fraction, 0);
  EXPECT_EQ(made.makespan, 2 * 12 * 3 + 3);
}

TEST(Greedy, SchedulesAreLegalAndWithinTheirLimitForAnyTimes) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> time(0.0, 4.0);
  for (int trial = 0; trial < 200; ++trial) {
    const Placing placing = trial % 2 == 0 ? Placing::Even : Placing::V;
    const int p = 1 + trial % 5, m = 1 + trial % 9, chunks = placing == Placing::V ? 2 : 1;
    const auto of_stage = [&](int) { return std::array{time(random), time(random), time(random)}; };
    Times times = times_of(placing, p, of_stage, trial % 3 * 0.5);
    times.options.limit = chunks + trial % 4;
    const Schedule plan = greedy(schedule::request(p, m), times.options);
    EXPECT_TRUE(check(plan).empty()) << check(plan).front().text;
    EXPECT_LE(peak_in_flight(run(plan, times.table)), times.options.limit);
  }
}

TEST(Greedy, HalvesTheBubbleOfZbVWhenAttentionDominatesAndMemoryAllows) {
  const auto of_stage = [](int) { return std::array{1.0, 1.75, 0.5}; };
  Times times = times_of(Placing::V, 4, of_stage, 0);
  times.options.limit = 16;
  const Result zb_v = run(schedule::generate("zb-v", schedule::request(4, 8)), times.table);
  const Result made = run(greedy(schedule::request(4, 8), times.options), times.table);
  EXPECT_LT(made.bubble_fraction, 0.5 * zb_v.bubble_fraction);
}

TEST(Greedy, LimitsCanBeBytesThatDifferFromStageToStage) {
  Times times = times_of(
      Placing::V, 3,
      [](int) {
        return std::array{1.0, 1.0, 1.0};
      },
      0);
  times.options.record = {50, 10, 10, 10, 10, 20};
  times.options.limit = 130;
  const Schedule plan = greedy(schedule::request(3, 12), times.options);
  EXPECT_TRUE(check(plan).empty());
  for (const auto& row : plan.devices) {
    Bytes held = 0;
    for (const schedule::Action& a : row) {
      if (a.kind == schedule::Kind::Forward) held += times.options.record[a.key.stage];
      EXPECT_LE(held, 130);
      if (a.kind == schedule::Kind::BackwardWeight) held -= times.options.record[a.key.stage];
    }
  }
}

TEST(Greedy, WrongOptionsAreRefused) {
  const schedule::Request request = schedule::request(2, 4);
  EXPECT_THROW(greedy(request, {.forward = {1, 1}}), InputError);
  EXPECT_THROW(greedy(request, {.placing = Placing::Even, .weight = {1, -1}}), InputError);
  EXPECT_THROW(greedy(request, {.transfer = std::numeric_limits<double>::infinity()}), InputError);
  EXPECT_THROW(greedy(request, {.record = {1, 1, 1}}), InputError);
  EXPECT_THROW(greedy(request, {.limit = 1}), InputError);
}

}  // namespace
}  // namespace penstock::sim
