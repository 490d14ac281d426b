// SPDX-License-Identifier: Apache-2.0
// What a simulation adds up to while it runs is what its timeline adds up to, to the last bit.
#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "sim/brute_force.h"
#include "sim/costs/unit.h"
#include "sim/costs/what_if.h"
#include "sim/print.h"
#include "sim/random_costs.h"

namespace penstock::sim {
namespace {

using schedule::Program;

// Of the program: all that to_json prints is the same with and without a timeline.
void expect_same(const Program& program, const Costs& costs, bool figures_of_order = false) {
  ResultOptions options{.imbalance = figures_of_order, .memory = figures_of_order};
  const Result whole = evaluate(program, costs, options);
  options.timeline = false;
  const Result result = evaluate(program, costs, options);
  EXPECT_EQ(to_json(result), to_json(whole));
  EXPECT_TRUE(result.timeline.devices.empty());
}

bool in_passing(const Program& program, const Costs& costs) { return summarize(program, costs).has_value(); }

TEST(Summary, IsThatOfTheTimelineForEverySchedule) {
  for (const schedule::Generator& generator : schedule::generators()) {
    for (const int p : {1, 2, 4, 8}) {
      if (p == 1 && generator.replicates_parameters) continue;
      const Program program = lower(schedule::generate(generator.name, schedule::request(p, 16)));
      const RandomCosts costs(static_cast<std::uint64_t>(p), {.occupied = 1, .latency = 2});
      EXPECT_TRUE(in_passing(program, costs)) << generator.name << " " << p;
      expect_same(program, costs);
      expect_same(program, UnitCosts({.transfer = 0.3}), true);
    }
  }
}

TEST(Summary, IsThatOfTheTimelineForRandomSchedules) {
  std::mt19937 random(21);
  for (int trial = 0; trial < 300; ++trial) {
    const RandomCosts costs(static_cast<std::uint64_t>(trial), {trial % 3 * 1.5, trial % 4 * 0.75});
    expect_same(lower(random_schedule(random)), costs);
  }
}

TEST(Summary, IsThatOfTheTimelineWithCollectives) {
  std::mt19937 random(22);
  for (int trial = 0; trial < 300; ++trial)
    expect_same(random_meetings(random), RandomCosts(static_cast<std::uint64_t>(trial)));
  const auto slices = schedule::generate("slimpipe", schedule::request(4, 2, 8, 2));
  expect_same(schedule::lower(slices, {.vocabulary = {.parallel = true}}), RandomCosts(1, {1, 2}));
}

TEST(Summary, IsThatOfTheTimelineWithCopiesAndChangedCosts) {
  const UnitCosts unit({.copy = 3}, {.record = 4});
  const auto bytes = [](const schedule::Key&) { return Bytes{4}; };
  const Program program =
      schedule::lower(schedule::generate("slimpipe", schedule::request(4, 4, 8)), {.offload_bytes = bytes});
  expect_same(program, unit);
  const std::vector<Override> slower{parse_override("device:1=1.5", 4)};
  expect_same(program, WhatIf(unit, slower, 4));
}

TEST(Summary, LeavesBytesAndUnequalActionsToTheTimeline) {
  const auto schedule = schedule::generate("1f1b", schedule::request(4, 8));
  expect_same(lower(schedule), UnitCosts({}, {.record = 7}), true);
  expect_same(lower(schedule, {.transfer_bytes = [](int, int) { return 10; }}), UnitCosts(), true);
  expect_same(lower(schedule), RandomCosts(5), true);
}

TEST(Summary, LeavesToTheTimelineWhatNeedsIt) {
  const UnitCosts unit;
  // Device 0's transfers overtake the action that waits.
  const Program overtaking = two_slices(
      "device 0\n0 0F0\n1 0RECV_B0 from 1\n2 0B0 after 1\n3 0SEND_F0 to 1 after 0\n"
      "device 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 after 2\n");
  EXPECT_FALSE(in_passing(overtaking, unit));
  expect_same(overtaking, unit);
  const Program stuck = two_slices("device 0\n0 0F0\ndevice 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n");
  EXPECT_FALSE(in_passing(stuck, unit));
  expect_same(stuck, unit);
  const Program never_sent = two_slices("device 0\n0 0F0\ndevice 1\n0 1RECV_F0 from 0\n");
  EXPECT_FALSE(in_passing(never_sent, unit));
  expect_same(never_sent, unit);
}

// Actions on one device that waits for its first op at the end; and a receive posted long before its message.
TEST(Summary, LeavesToTheTimelineWaitsForOpsLongBefore) {
  std::string list = "device 0\n0 0F0\n1 0OFFLOAD0 after 0\n";
  for (int i = 2; i < 100; ++i) list += std::to_string(i) + " 0OFFLOAD0\n";
  const Program waits = two_slices(list + "100 0B0 after 1\ndevice 1\n");
  EXPECT_FALSE(in_passing(waits, UnitCosts()));
  expect_same(waits, UnitCosts());
  list = "device 0\n0 0RECV_B0 from 1\n";
  for (int i = 1; i < 100; ++i) list += std::to_string(i) + " 0F0\n";
  const Program posts = two_slices(list + "device 1\n0 1B0\n1 1SEND_B0 to 0 after 0\n");
  EXPECT_FALSE(in_passing(posts, UnitCosts()));
  expect_same(posts, UnitCosts());
}

// A receive that the action after so many ops waits for, over a message that is on its way for a while.
TEST(Summary, ExplainsAWaitForAReceiveAtTheEndOfWhatIsKept) {
  const UnitCosts costs({.transfer = 3});
  for (const int back : {62, 63, 64, 65}) {
    std::string list = "device 0\n0 0RECV_B0 from 1\n1 0F0\n";
    for (int i = 2; i < back; ++i) list += std::to_string(i) + " 0OFFLOAD0\n";
    const Program program =
        two_slices(list + std::to_string(back) + " 0B0 after 0\ndevice 1\n0 1B0\n1 1SEND_B0 to 0 after 0\n");
    EXPECT_EQ(in_passing(program, costs), back < 64) << back;
    expect_same(program, costs);
  }
  schedule::Request request = schedule::request(2, 23, 1, 2);
  for (int m = 16; m <= 32; ++m) {
    request.slices.assign(static_cast<std::size_t>(m), 1);
    expect_same(lower(schedule::generate("breadth-first", request)), UnitCosts({.transfer = 12}));
  }
}

}  // namespace
}  // namespace penstock::sim
