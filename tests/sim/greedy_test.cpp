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

using schedule::make_greedy;
using schedule::OpKind;
using schedule::Request;
using schedule::Schedule;
using schedule::StageCosts;

// Times for every stage, and the same as a simulator's costs.
struct Times {
  StageCosts costs;
  CostTable table{TableExtent{}};
};

Times times_of(int chunks, int p, const std::function<std::array<Seconds, 3>(int)>& of_stage,
               Seconds transfer) {
  const int stages = chunks * p;
  Times times{{.transfer = transfer}, CostTable({stages, 1, p})};
  for (int stage = 0; stage < stages; ++stage) {
    const auto [f, i, w] = of_stage(stage);
    times.costs.forward.push_back(f);
    times.costs.input.push_back(i);
    times.costs.weight.push_back(w);
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

Schedule greedy(int p, int m, int chunks, const StageCosts& costs) {
  Request request = schedule::request(p, m, 1, chunks);
  request.costs = costs;
  return make_greedy(request).schedule;
}

Result run(const Schedule& plan, const Costs& costs) {
  return evaluate(lower(plan), costs, {.imbalance = false, .memory = false});
}

int peak_in_flight(const Result& result) {
  int peak = 0;
  for (const DeviceResult& device : result.devices) peak = std::max(peak, device.in_flight.peak);
  return peak;
}

std::vector<std::string> patterns(int chunks) {
  if (chunks == 1) return {"1f1b", "zb-h1", "zb-h2"};
  return {"zb-v", "v-half", "v-min", "dualpipe-v"};
}

TEST(Greedy, IsNeverSlowerThanAPatternThatHoldsNoMore) {
  for (const int chunks : {1, 2}) {
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int m : {1, 4, 8, 17}) {
        for (const double attention : {0.0, 0.25, 0.5, 0.75}) {
          const auto of_stage = [&](int) {
            return std::array{1.0, 1 - attention + 2.5 * attention, 1 - attention};
          };
          for (const Seconds transfer : {0.0, 0.3}) {
            const Times times = times_of(chunks, p, of_stage, transfer);
            for (const std::string& name : patterns(chunks)) {
              const Result pattern = run(generate(name, schedule::request(p, m)), times.table);
              StageCosts costs = times.costs;
              costs.limit = peak_in_flight(pattern);
              const Result made = run(greedy(p, m, chunks, costs), times.table);
              EXPECT_LE(made.makespan, pattern.makespan + 1e-9) << name << " p " << p << " m " << m;
              EXPECT_LE(peak_in_flight(made), costs.limit);
            }
          }
        }
      }
    }
  }
}

TEST(Greedy, FindsZbVWithoutIdleTimeInTheSpansAtUnitTimes) {
  const Times times = times_of(
      2, 4,
      [](int) {
        return std::array{1.0, 1.0, 1.0};
      },
      0);
  const Result made = run(greedy(4, 12, 2, times.costs), times.table);
  EXPECT_EQ(made.span_bubble_fraction, 0);
  EXPECT_EQ(made.makespan, 2 * 12 * 3 + 3);
}

TEST(Greedy, SchedulesAreLegalAndWithinTheirLimitForAnyTimes) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> time(0.0, 4.0);
  for (int trial = 0; trial < 200; ++trial) {
    const int p = 1 + trial % 5, m = 1 + trial % 9, chunks = 1 + trial % 2;
    const auto of_stage = [&](int) { return std::array{time(random), time(random), time(random)}; };
    Times times = times_of(chunks, p, of_stage, trial % 3 * 0.5);
    times.costs.limit = chunks + trial % 4;
    const Schedule plan = greedy(p, m, chunks, times.costs);
    EXPECT_TRUE(check(plan).empty()) << check(plan).front().text;
    EXPECT_LE(peak_in_flight(run(plan, times.table)), times.costs.limit);
  }
}

TEST(Greedy, HalvesTheBubbleOfZbVWhenAttentionDominatesAndMemoryAllows) {
  const auto of_stage = [](int) { return std::array{1.0, 1.75, 0.5}; };
  Times times = times_of(2, 4, of_stage, 0);
  times.costs.limit = 16;
  const Result zb_v = run(schedule::generate("zb-v", schedule::request(4, 8)), times.table);
  const Result made = run(greedy(4, 8, 2, times.costs), times.table);
  EXPECT_LT(made.bubble_fraction, 0.5 * zb_v.bubble_fraction);
}

TEST(Greedy, LimitsCanBeBytesThatDifferFromStageToStage) {
  Times times = times_of(
      2, 3,
      [](int) {
        return std::array{1.0, 1.0, 1.0};
      },
      0);
  times.costs.record = {50, 10, 10, 10, 10, 20};
  times.costs.limit = 130;
  const Schedule plan = greedy(3, 12, 2, times.costs);
  EXPECT_TRUE(check(plan).empty());
  for (const auto& row : plan.devices) {
    Bytes held = 0;
    for (const schedule::Action& a : row) {
      if (a.kind == schedule::Kind::Forward) held += times.costs.record[a.key.stage];
      EXPECT_LE(held, 130);
      if (a.kind == schedule::Kind::BackwardWeight) held -= times.costs.record[a.key.stage];
    }
  }
}

TEST(Greedy, WrongCostsAreRefused) {
  EXPECT_THROW(greedy(2, 4, 2, {.forward = {1, 1}}), InputError);
  EXPECT_THROW(greedy(2, 4, 1, {.weight = {1, -1}}), InputError);
  EXPECT_THROW(greedy(2, 4, 2, {.transfer = std::numeric_limits<double>::infinity()}), InputError);
  EXPECT_THROW(greedy(2, 4, 1, {.forward = {1e308, 1e308}}), InputError);
  EXPECT_THROW(greedy(2, 4, 2, {.record = {1, 1, 1}}), InputError);
  EXPECT_THROW(greedy(2, 4, 3, {}), InputError);
}

TEST(Greedy, ALimitThatLetsNoMicroBatchThroughIsRefusedWithTheLeastPossibleOne) {
  StageCosts costs{.record = {50, 10, 10, 10, 10, 20}, .limit = 69};
  try {
    greedy(3, 4, 2, costs);
    FAIL() << "69 is less than the 50 + 20 of the first device";
  } catch (const InputError& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("expected at least 70"), std::string::npos) << refusal.what();
  }
  costs.limit = 70;
  EXPECT_TRUE(check(greedy(3, 4, 2, costs)).empty());
}

// A weight pass of no time leaves nothing to fill bubbles with; a long one is worth waiting for.
TEST(Greedy, OtherTimesGiveAnotherOrder) {
  const auto with = [](double input, double weight) {
    return greedy(4, 8, 2,
                  times_of(
                      2, 4,
                      [&](int) {
                        return std::array{1.0, input, weight};
                      },
                      0.25)
                      .costs);
  };
  EXPECT_NE(with(1, 1).devices, with(1.75, 0.25).devices);
  const CostTable long_context = times_of(
                                     2, 4,
                                     [](int) {
                                       return std::array{1.0, 1.75, 0.25};
                                     },
                                     0.25)
                                     .table;
  EXPECT_LT(run(with(1.75, 0.25), long_context).makespan, run(with(1, 1), long_context).makespan);
}

TEST(Greedy, SaysWhichPatternItAdopted) {
  const auto origin = [](double input, double weight, Bytes limit) {
    Request request = schedule::request(4, 8);
    request.costs = times_of(
                        2, 4,
                        [&](int) {
                          return std::array{1.0, input, weight};
                        },
                        0)
                        .costs;
    request.costs.limit = limit;
    const schedule::GreedySchedule made = make_greedy(request);
    if (made.origin() == "zb-v") {
      EXPECT_EQ(made.schedule.devices, schedule::generate("zb-v", schedule::request(4, 8)).devices);
    }
    return made.origin();
  };
  EXPECT_EQ(origin(1, 1, 8), "zb-v");
  EXPECT_EQ(origin(1.75, 0.5, 8), "zb-v, W anew");
  EXPECT_EQ(origin(1.75, 0.5, 16), "own rules");
}

}  // namespace
}  // namespace penstock::sim
