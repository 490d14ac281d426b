// SPDX-License-Identifier: Apache-2.0
#include "sim/result.h"

#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "sim/brute_force.h"
#include "sim/costs/table.h"
#include "sim/costs/unit.h"
#include "sim/random_costs.h"

namespace penstock::sim {
namespace {

using schedule::Program;

Bytes ten_bytes(int, int) { return 10; }

// The parts of device d's idle time.
IdleCauses idle_of(const Program& program, const Costs& costs, int d) {
  return evaluate(program, costs).devices.at(d).time.idle;
}

TEST(Result, BusyAndIdleByCauseAddUpToTheMakespanOnEveryDevice) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 500; ++trial) {
    const RandomCosts costs(static_cast<std::uint64_t>(trial), {trial % 3 * 1.5, trial % 4 * 0.75});
    const Result result = evaluate(lower(random_schedule(random), {.transfer_bytes = ten_bytes}), costs);
    ASSERT_FALSE(result.deadlock);
    for (const DeviceResult& device : result.devices) {
      const IdleCauses& idle = device.time.idle;
      EXPECT_NEAR(device.time.busy + idle.total(), result.makespan, 1e-9 * result.makespan);
      for (const Seconds part : {idle.ramp, idle.transfer, idle.copy, idle.imbalance, idle.dependency}) {
        EXPECT_GE(part, 0.0);
      }
    }
  }
}

TEST(Result, BytesEndAtNothingInEveryCategory) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 500; ++trial) {
    const RandomCosts costs(static_cast<std::uint64_t>(trial), {0.5, 1.5});
    const Result result = evaluate(lower(random_schedule(random), {.transfer_bytes = ten_bytes}), costs);
    for (const DeviceResult& device : result.devices) {
      EXPECT_EQ(device.memory.at_end, HeldBytes{});
      EXPECT_EQ(total(device.memory.at_peak), device.memory.peak);
    }
  }
}

TEST(Result, NoTransfersAndEqualTimesLeaveOnlyRampAndDependency) {
  for (const schedule::Generator& generator : schedule::generators()) {
    const Program program = lower(schedule::generate(generator.name, schedule::request(4, 8)));
    for (const DeviceResult& device : evaluate(program, UnitCosts()).devices) {
      EXPECT_EQ(device.time.idle.transfer, 0);
      EXPECT_EQ(device.time.idle.copy, 0);
      EXPECT_EQ(device.time.idle.imbalance, 0);
    }
  }
}

TEST(Result, WaitingForBytesInFlightIsTransferWait) {
  const Program program = lower(schedule::generate("1f1b", schedule::request(2, 1)));
  const IdleCauses first = idle_of(program, UnitCosts({.transfer = 0.25}), 0);
  EXPECT_EQ(first.transfer, 0.25);    // of the gradient
  EXPECT_EQ(first.dependency, 3.25);  // the last stage's F and B, and the hidden states on their way to it
  EXPECT_EQ(idle_of(program, UnitCosts({.transfer = 0.25}), 1).ramp, 1 + 0.25 + 0.25 + 2);
}

TEST(Result, WaitingForAReloadAloneIsCopyWait) {
  const Program program = two_slices(
      "device 0\n0 0F0\n1 0OFFLOAD0 bytes 8 after 0\n2 0RELOAD0 bytes 8 after 1\n3 1F0\n4 1B0\n5 0B0 after "
      "2\n");
  CostTable table(extent_of(program));
  for (const auto kind : {schedule::OpKind::Forward, schedule::OpKind::Backward, schedule::OpKind::Offload,
                          schedule::OpKind::Reload}) {
    for (const int stage : {0, 1}) table.set_seconds(kind, stage, 0, 2);
  }
  EXPECT_EQ(idle_of(program, table, 0).copy, 0);
  table.set_seconds(schedule::OpKind::Reload, 0, 0, 5);
  EXPECT_EQ(idle_of(program, table, 0).copy, 3);
  EXPECT_EQ(idle_of(program, table, 0).total(), 3);
}

TEST(Result, WhatVanishesWithMeanTimesIsImbalance) {
  const Program program = lower(schedule::generate("1f1b", schedule::request(2, 16)));
  CostTable table(extent_of(program));
  for (const int stage : {0, 1}) {
    table.set_seconds(schedule::OpKind::Forward, stage, 0, stage == 0 ? 1 : 3);
    table.set_seconds(schedule::OpKind::Backward, stage, 0, stage == 0 ? 2 : 6);
  }
  const Result result = evaluate(program, table);
  const Result even = evaluate(program, UnitCosts({.forward = 2, .backward = 4}));
  const IdleCauses& light = result.devices[0].time.idle;
  EXPECT_NEAR(light.imbalance + light.dependency, result.makespan - 16 * 3, 1e-9);
  EXPECT_NEAR(light.dependency, even.devices[0].time.idle.dependency, 1e-9);
  EXPECT_GT(light.imbalance, 0.5 * result.makespan);
  EXPECT_NEAR(result.devices[1].time.idle.total(), 1 + 2, 1e-9);
}

TEST(Result, SpanBubbleOfAParallelogramIsNothingThoughTheStepHasCorners) {
  const schedule::Schedule corners{"corners", 2, {1}, {{schedule::forward(0, 0)}, {schedule::forward(1, 0)}}};
  const Result result = evaluate(lower(corners), UnitCosts());
  EXPECT_EQ(result.span_bubble_fraction, 0);
  EXPECT_EQ(result.bubble_fraction, 0.5);
}

TEST(Result, InFlightIsTheFormulaOfSlimPipe) {
  for (const int p : {1, 2, 4}) {
    for (const int n : {1, 4, 8}) {
      const Result result =
          evaluate(lower(schedule::generate("slimpipe", schedule::request(p, 4, n))), UnitCosts());
      for (int r = 0; r < p; ++r) {
        EXPECT_EQ(result.devices[r].in_flight.peak, std::min(4 * n, n + 2 * (p - r - 1)));
        EXPECT_EQ(result.devices[r].in_flight.peak_until_input, result.devices[r].in_flight.peak);
      }
    }
  }
}

TEST(Result, SplitBackwardHoldsRecordsUntilInputAndWeightRecordsUntilWeight) {
  const Program program = lower(schedule::generate("zb-h1", schedule::request(4, 8)));
  const Result result = evaluate(program, UnitCosts({}, {.record = 100, .weight_record = 7}));
  for (const DeviceResult& device : result.devices) {
    const Bytes records = device.memory.peaks[static_cast<int>(Held::Records)];
    const Bytes weights = device.memory.peaks[static_cast<int>(Held::WeightRecords)];
    EXPECT_EQ(records, 100 * device.in_flight.peak_until_input);
    EXPECT_GE(weights, 7);
    EXPECT_LE(weights, 7 * device.in_flight.peak);
  }
}

TEST(Result, GradientsOfKeysAndValuesPeakAtTheSlicesOfAMicroBatch) {
  for (const int n : {2, 4, 8}) {
    const Program program = lower(schedule::generate("slimpipe", schedule::request(4, 3, n)));
    for (const DeviceResult& device : evaluate(program, UnitCosts({}, {.kv_gradient = 5})).devices) {
      EXPECT_EQ(device.memory.peaks[static_cast<int>(Held::KvGradients)], 5 * n);
    }
  }
}

CostTable with_a_slow_second_stage(const Program& program) {
  CostTable table(extent_of(program));
  table.set_seconds(schedule::OpKind::Forward, 0, 0, 1);
  table.set_seconds(schedule::OpKind::Forward, 1, 0, 4);
  return table;
}

TEST(Result, MessagesOnTheirWayCountAtBothEndsAndQueueUntilUsed) {
  const Program program = two_slices(
      "device 0\n0 0F0\n1 0SEND_F0 to 1 bytes 64 after 0\n"
      "device 1\n0 1RECV_F0 from 0 bytes 64\n1 1F1\n2 1F0 after 0\n");
  CostTable table = with_a_slow_second_stage(program);
  table.set_link(0, 1, {.latency = 1});
  const Result result = evaluate(program, table, {.memory_samples = true});
  const std::vector<MemorySample>& samples = result.devices[1].memory.samples;
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].time, 0);
  EXPECT_EQ(samples[0].bytes[static_cast<int>(Held::Buffers)], 64);
  EXPECT_EQ(samples[1].time, 2);
  EXPECT_EQ(samples[1].bytes[static_cast<int>(Held::Queues)], 64);
  EXPECT_EQ(samples[2].time, 4);
  EXPECT_EQ(total(samples[2].bytes), 0);
  EXPECT_EQ(result.devices[0].memory.peaks[static_cast<int>(Held::Buffers)], 64);
}

// The receive is posted at 4 only: until then the sender has the message.
TEST(Result, MessagesStayWithTheSenderUntilTheReceiverIsReady) {
  const Program program = two_slices(
      "device 0\n0 0F0\n1 0SEND_F0 to 1 bytes 64 after 0\n"
      "device 1\n0 1F1\n1 1RECV_F0 from 0 bytes 64 after 0\n2 1F0 after 1\n");
  const CostTable table = with_a_slow_second_stage(program);
  const Result result = evaluate(program, table, {.memory_samples = true});
  const std::vector<MemorySample>& samples = result.devices[0].memory.samples;
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].time, 1);
  EXPECT_EQ(samples[0].bytes[static_cast<int>(Held::Buffers)], 64);
  EXPECT_EQ(samples[1].time, 4);
  EXPECT_EQ(total(samples[1].bytes), 0);
}

TEST(Result, WhatAStageHandsToAnotherOfItsDeviceWaitsForIt) {
  const Program program =
      two_slices("device 0\n0 0F0\n1 0F1\n2 1F1 after 1\n3 1F0 after 0\n4 1B1\n5 1B0\n6 0B0\n7 0B1\n");
  const Result result = evaluate(program, UnitCosts({}, {.handed_over = 10}), {.memory_samples = true});
  std::vector<std::pair<Seconds, Bytes>> waiting;
  for (const MemorySample& sample : result.devices[0].memory.samples)
    waiting.emplace_back(sample.time, sample.bytes[static_cast<int>(Held::Transient)]);
  EXPECT_EQ(waiting, (std::vector<std::pair<Seconds, Bytes>>{{1, 10}, {3, 0}, {6, 10}, {10, 0}}));
}

TEST(Result, OffloadedBytesLeaveTheRecordsUntilReloaded) {
  const Program program = two_slices(
      "device 0\n0 0F0\n1 0OFFLOAD0 bytes 60 after 0\n2 0F1\n3 0RELOAD0 bytes 60 after 1,2\n4 0B0 after 3\n");
  CostTable table(extent_of(program));
  for (const auto kind : {schedule::OpKind::Forward, schedule::OpKind::Backward, schedule::OpKind::Offload,
                          schedule::OpKind::Reload}) {
    table.set_seconds(kind, 0, 0, kind == schedule::OpKind::Forward ? 4 : 1);
  }
  table.set_record(0, 0, {.record = 100});
  const MemoryUse memory = evaluate(program, table, {.memory_samples = true}).devices[0].memory;
  std::vector<std::pair<Seconds, Bytes>> records;
  for (const MemorySample& sample : memory.samples) records.push_back({sample.time, sample.bytes[0]});
  const std::vector<std::pair<Seconds, Bytes>> expected{{0, 100}, {4, 200}, {5, 140}, {8, 200}, {10, 100}};
  EXPECT_EQ(records, expected);
}

TEST(Result, ADeadlockLeavesTheRestEmpty) {
  const Result result =
      evaluate(two_slices("device 0\n0 0F0\ndevice 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n"), UnitCosts());
  EXPECT_TRUE(result.deadlock);
  EXPECT_TRUE(result.devices.empty());
}

}  // namespace
}  // namespace penstock::sim
