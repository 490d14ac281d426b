// SPDX-License-Identifier: Apache-2.0
// Collectives in time: one rule for all, in programs with and without context exchange.
#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/meeting.h"
#include "schedule/passes/lower.h"
#include "sim/brute_force.h"
#include "sim/costs/unit.h"
#include "sim/exchange_run.h"
#include "sim/random_costs.h"
#include "sim/simulate.h"

namespace penstock::sim {
namespace {

using schedule::Op;
using schedule::OpKind;
using schedule::Program;

// Every op takes a time of its own.
class AllTakeTime final : public RandomCosts {
 public:
  using RandomCosts::RandomCosts;
  Seconds seconds(int device, std::uint32_t index, const Op& op) const override {
    return of(device, static_cast<int>(op.kind), static_cast<int>(index), 0, 0);
  }
};

void expect_times_of_brute_force(const Program& program, const Simulation& simulation, const Costs& costs,
                                 bool in_order) {
  ASSERT_FALSE(simulation.deadlock) << simulation.deadlock->text;
  const auto expected = longest_path_of_meetings(
      program,
      [&](int device, std::uint32_t index) {
        return costs.seconds(device, index, program.devices[device].ops[index]);
      },
      in_order);
  for (int d = 0; d < program.device_count(); ++d) {
    for (std::size_t i = 0; i < program.devices[d].ops.size(); ++i) {
      EXPECT_NEAR(simulation.timeline.devices[d][i].start, expected[d][i].first, 1e-9) << d << " " << i;
      EXPECT_NEAR(simulation.timeline.devices[d][i].end, expected[d][i].second, 1e-9) << d << " " << i;
    }
  }
}

TEST(Collectives, AgreeWithTheBruteForceOnRandomPrograms) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 1000; ++trial) {
    const Program program = random_meetings(random);
    const AllTakeTime costs(static_cast<std::uint64_t>(trial));
    expect_times_of_brute_force(program, simulate(program, costs), costs, false);
  }
}

TEST(Collectives, AgreeWithTheBruteForceWhereDevicesIssueInOrder) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 300; ++trial) {
    const Program program = random_meetings(random);
    const AllTakeTime costs(static_cast<std::uint64_t>(trial));
    expect_times_of_brute_force(program, simulate_exchange(program, costs), costs, true);
  }
}

TEST(Collectives, OneMemberThatNeverComesIsADeadlock) {
  std::mt19937 random(13);
  for (int trial = 0; trial < 50; ++trial) {
    Program program = random_meetings(random);
    if (program.device_count() == 1) continue;
    auto& ops = program.devices[0].ops;
    const auto meets = [](const Op& op) {
      return is_collective(op.kind) && !schedule::meeting_of(0, op).alone();
    };
    const auto last = std::ranges::find_if(ops.rbegin(), ops.rend(), meets);
    if (last == ops.rend()) continue;
    last->kind = OpKind::Forward;
    last->peer = -1;
    EXPECT_TRUE(simulate(program, UnitCosts()).deadlock);
    EXPECT_TRUE(simulate_exchange(program, UnitCosts()).deadlock);
  }
}

// Reducing a stage while another computes costs nothing; the last one's time is seen whole.
TEST(Collectives, ReductionsRunBesideTheBackwardsOfOtherStages) {
  class ReductionsTakeOne final : public RandomCosts {
   public:
    ReductionsTakeOne() : RandomCosts(0) {}
    Seconds seconds(int, std::uint32_t, const Op& op) const override {
      return op.kind == OpKind::ReduceGradients || is_action(op.kind) ? 1 : 0;
    }
  };
  schedule::Lowering replicated;
  replicated.replicas.gradient_bytes = [](int) { return Bytes{8}; };
  for (const int p : {1, 2, 4}) {
    for (const int m : {4, 8}) {
      const auto schedule = schedule::generate("interleaved", schedule::request(p, m, 1, 2));
      const Seconds before = simulate(lower(schedule), ReductionsTakeOne()).timeline.makespan();
      const Seconds after = simulate(lower(schedule, replicated), ReductionsTakeOne()).timeline.makespan();
      EXPECT_EQ(after, before + 1) << p << " " << m;
    }
  }
}

}  // namespace
}  // namespace penstock::sim
