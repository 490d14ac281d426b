// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.h"

#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "sim/brute_force.h"
#include "sim/costs/unit.h"
#include "sim/random_costs.h"
#include "sim/result.h"

namespace penstock::sim {
namespace {

using schedule::Kind;
using schedule::Program;
using schedule::Schedule;

Program program_of(const char* name, int p, int m, int n = 1) {
  return lower(schedule::generate(name, schedule::request(p, m, n)));
}

Program parse(const std::string& lists, const char* slices = "1") {
  return schedule::parse_program(
      "penstock program 1\nname x\nstages 2\nslices " + std::string(slices) + "\n" + lists, "x");
}

TEST(Simulate, UnitTimesGiveTheBubblesOfTheFormulas) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {1, 2, 3, 8, 16}) {
      const double unsliced = (p - 1.0) / (m + p - 1.0);
      EXPECT_NEAR(evaluate(program_of("gpipe", p, m), UnitCosts()).bubble_fraction, unsliced, 1e-12);
      EXPECT_NEAR(evaluate(program_of("1f1b", p, m), UnitCosts()).bubble_fraction, unsliced, 1e-12);
      for (const int n : {1, 2, 4, 8, 16}) {
        const Result result = evaluate(program_of("slimpipe", p, m, n), UnitCosts());
        EXPECT_EQ(result.makespan, 3.0 * (m * n + p - 1));
        EXPECT_NEAR(result.bubble_fraction, (p - 1.0) / (m * n + p - 1.0), 1e-12);
      }
    }
  }
}

TEST(Simulate, AgreesWithTheBruteForceLongestPathOnRandomSchedules) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 1000; ++trial) {
    const Schedule schedule = random_schedule(random);
    const Transfer transfer{.occupied = trial % 3 * 2.5, .latency = trial % 5 * 1.25};
    const RandomCosts costs(static_cast<std::uint64_t>(trial), transfer);
    const auto seconds = [&](int device, const schedule::Action& a) {
      return costs.of(device, static_cast<int>(a.kind) - 1, a.key.stage, a.key.micro_batch, a.key.slice);
    };
    const BruteForce expected = longest_path(
        schedule, seconds, [&](int, int) { return transfer.occupied; }, transfer.latency);
    const Program program = lower(schedule, {.optimizer_step = false});
    const Simulation simulation = simulate(program, costs);
    ASSERT_FALSE(simulation.deadlock) << simulation.deadlock->text;
    for (int d = 0; d < program.device_count(); ++d) {
      std::size_t action = 0;
      for (std::size_t i = 0; i < program.devices[d].ops.size(); ++i) {
        if (!is_action(program.devices[d].ops[i].kind)) continue;
        ASSERT_NEAR(simulation.timeline.devices[d][i].end, expected.end[d][action++], 1e-9) << trial;
      }
    }
  }
}

TEST(Simulate, ATransferIsAPureDelayBetweenDevices) {
  const UnitCosts costs({.transfer = 0.5});
  EXPECT_EQ(simulate(program_of("gpipe", 2, 1), costs).timeline.makespan(), 1 + 0.5 + 1 + 2 + 0.5 + 2);
  EXPECT_EQ(simulate(program_of("gpipe", 2, 8), costs).timeline.makespan(), (1 + 0.5 + 8) + (16 + 0.5 + 2));
}

TEST(Simulate, MessagesOfALinkFollowEachOtherAndBothDirectionsAreApart) {
  const Program program = parse(
      "device 0\n0 0F0\n1 0SEND_F0 to 1 bytes 4 after 0\n2 0SEND_F0 to 1 bytes 4 after 0\n"
      "device 1\n0 1RECV_F0 from 0 bytes 4\n1 1RECV_F0 from 0 bytes 4\n2 1SEND_F0 to 0 bytes 4\n");
  const Simulation simulation = simulate(program, RandomCosts(1, {.occupied = 2, .latency = 3}));
  const Seconds done = simulation.timeline.devices[0][0].end;
  EXPECT_DOUBLE_EQ(simulation.timeline.devices[1][0].end, done + 2 + 3);
  EXPECT_DOUBLE_EQ(simulation.timeline.devices[1][1].end, done + 4 + 3);
  EXPECT_DOUBLE_EQ(simulation.timeline.devices[1][2].end, 5);
}

TEST(Simulate, LanesOvertakeEachOther) {
  // Device 0 issues the send of its first result only after a compute op that waits for the answer to it.
  const Program program = parse(
      "device 0\n0 0F0\n1 0RECV_B0 from 1\n2 0B0 after 1\n3 0SEND_F0 to 1 after 0\n"
      "device 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 after 2\n");
  const Simulation simulation = simulate(program, UnitCosts());
  ASSERT_FALSE(simulation.deadlock);
  EXPECT_EQ(simulation.timeline.makespan(), 1 + 1 + 2 + 2);
}

TEST(Simulate, AReductionStartsWhenBothDevicesHaveComeToIt) {
  const Program program = parse(
      "device 0\n0 0F0\n1 0REDUCE_GRAD with 1 after 0\n2 STEP after 1\n"
      "device 1\n0 1F0\n1 1B0\n2 1REDUCE_GRAD with 0 after 1\n3 STEP after 2\n");
  const Simulation simulation = simulate(program, UnitCosts());
  ASSERT_FALSE(simulation.deadlock);
  EXPECT_EQ(simulation.timeline.devices[0][1].start, 3);
  EXPECT_EQ(simulation.timeline.devices[0][2].start, 3);
}

TEST(Simulate, CopiesRunBesideComputeOneAfterTheOther) {
  struct CopyCosts final : Costs {
    Seconds seconds(int, std::uint32_t, const schedule::Op& op) const override {
      return lane_of(op.kind) == schedule::Lane::Compute ? 1 : 5;
    }
    Transfer transfer(int, std::uint32_t, const schedule::Op&) const override { return {}; }
    RecordBytes record(const schedule::Key&) const override { return {}; }
  };
  const Program program = parse(
      "device 0\n0 0F0\n1 0OFFLOAD0 after 0\n2 1F0\n3 1OFFLOAD0 after 2\n4 0RELOAD0 after 1\n5 0B0 after "
      "4\n");
  const Simulation simulation = simulate(program, CopyCosts());
  EXPECT_EQ(simulation.timeline.devices[0][3].start, 6);
  EXPECT_EQ(simulation.timeline.devices[0][4].end, 11);
  EXPECT_EQ(simulation.timeline.devices[0][5].start, 11);
}

TEST(Simulate, ADeadlockIsDescribedAlongTheCircle) {
  const Program program = parse(
      "device 0\n0 0RECV_B0 from 1\n1 0B0 after 0\n2 0F0\n3 0SEND_F0 to 1 after 2\n"
      "device 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 after 2\n");
  const Simulation simulation = simulate(program, UnitCosts());
  ASSERT_TRUE(simulation.deadlock);
  EXPECT_EQ(simulation.deadlock->stalls.size(), 2u);
  EXPECT_EQ(simulation.deadlock->text,
            "deadlock: device 0 waits at op 1, 0B0, for 0RECV_B0 from device 1; "
            "device 1 waits at op 1, 1F0, for 1RECV_F0 from device 0");
}

TEST(Simulate, AMessageNeverSentIsADeadlock) {
  const Simulation simulation =
      simulate(parse("device 0\n0 0F0\ndevice 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n"), UnitCosts());
  ASSERT_TRUE(simulation.deadlock);
  EXPECT_EQ(simulation.deadlock->text,
            "deadlock: device 1 waits at op 1, 1F0, for 1RECV_F0 from device 0; device 0 is done");
  EXPECT_TRUE(simulate(parse("device 0\n0 0F0\ndevice 1\n0 1RECV_F0 from 0\n"), UnitCosts()).deadlock);
  EXPECT_TRUE(simulate(parse("device 0\n0 0REDUCE_GRAD with 1\ndevice 1\n"), UnitCosts()).deadlock);
}

TEST(Simulate, EveryGeneratorsProgramsRunToTheirEnd) {
  for (const schedule::Generator& generator : schedule::generators()) {
    for (const int p : {2, 4}) {
      const Program program = lower(schedule::generate(generator.name, schedule::request(p, 8)));
      EXPECT_FALSE(simulate(program, RandomCosts(3, {.occupied = 1, .latency = 2})).deadlock)
          << generator.name;
    }
  }
}

}  // namespace
}  // namespace penstock::sim
