// SPDX-License-Identifier: Apache-2.0
// Programs with exchange, against published figures (docs/slimpipe.md, "Context exchange") and against
// plain arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/program_text.h"
#include "sim/costs/measured.h"
#include "sim/costs/what_if.h"
#include "sim/exchange_run.h"
#include "sim/idle.h"
#include "sim/result.h"

namespace penstock::sim {
namespace {

using schedule::ExchangeMode;
using schedule::Op;
using schedule::OpKind;
using schedule::Program;

// F takes 1 and B 2 in the mean; of both a share is attention, which grows with the slice.
class SliceCosts final : public Costs {
 public:
  // `document`: slices of each; 0: the sequence is one.
  SliceCosts(int slices, double share, int layers, Seconds latency = 0, int document = 0)
      : document_(document > 0 ? document : slices), share_(share), layers_(layers), latency_(latency) {}
  Seconds seconds(int device, std::uint32_t index, const Op& op) const override {
    return mean(op) * (1 - share_) + attention(device, index, op).seconds;
  }
  Transfer transfer(int, std::uint32_t, const Op&) const override { return {0, latency_}; }
  RecordBytes record(const schedule::Key&) const override { return {}; }
  AttentionShare attention(int, std::uint32_t, const Op& op) const override {
    return {mean(op) * share_ * (op.key.slice % document_ + 0.5) / (document_ / 2.0), layers_};
  }
  double share_of_attention(const schedule::Exchange& exchange) const override {
    return exchange.halves / (2.0 * (exchange.of.key.slice % document_) + 1);
  }

 private:
  static Seconds mean(const Op& op) {
    return op.kind == OpKind::Forward ? 1 : op.kind == OpKind::Backward ? 2 : 0;
  }
  int document_;
  double share_;
  int layers_;
  Seconds latency_;
};

struct Size {
  int devices, micro_batches, slices, chunks;
};

Program lowered(const Size& size, ExchangeMode exchange, bool vocabulary = false) {
  return schedule::lower(schedule::generate("slimpipe", schedule::request(size.devices, size.micro_batches,
                                                                          size.slices, size.chunks)),
                         {.vocabulary = {.parallel = vocabulary}, .exchange = {.mode = exchange}});
}

// Of the whole step: what all actions take, by the devices' time.
double bubble_of(const Program& program, const Simulation& simulation, const Costs& costs) {
  Seconds work = 0;
  for (int d = 0; d < program.device_count(); ++d) {
    for (std::uint32_t i = 0; i < program.devices[d].ops.size(); ++i) {
      if (is_action(program.devices[d].ops[i].kind)) work += costs.seconds(d, i, program.devices[d].ops[i]);
    }
  }
  return 1 - work / (program.device_count() * simulation.timeline.makespan());
}

// p8 m4 n16 v1, 4 layers a stage, attention half of the work.
double published(ExchangeMode exchange) {
  const Program program = lowered({8, 4, 16, 1}, exchange);
  const SliceCosts costs(16, 0.5, 4);
  return bubble_of(program, simulate_exchange(program, costs), costs);
}

TEST(Exchange, HasThePublishedBubbles) {
  EXPECT_NEAR(published(ExchangeMode::Off), 0.153, 0.0005);
  EXPECT_NEAR(published(ExchangeMode::Paired), 0.123, 0.0005);
  EXPECT_LT(published(ExchangeMode::Levelled), 0.1);
}

// Without exchange it is the longest path of simulate().
TEST(Exchange, WithoutHelpIsThePlainSimulation) {
  for (const Size& size : {Size{2, 2, 4, 1}, {4, 3, 8, 1}, {4, 2, 8, 2}, {3, 1, 5, 1}}) {
    for (const bool vocabulary : {false, true}) {
      const Program program = lowered(size, ExchangeMode::Off, vocabulary);
      const SliceCosts costs(size.slices, 0.3, 3, 0.1);
      const Simulation plain = simulate(program, costs), events = simulate_exchange(program, costs);
      ASSERT_FALSE(events.deadlock);
      for (std::size_t d = 0; d < program.devices.size(); ++d) {
        for (std::size_t i = 0; i < program.devices[d].ops.size(); ++i) {
          if (lane_of(program.devices[d].ops[i].kind) != schedule::Lane::Compute) continue;
          EXPECT_NEAR(events.timeline.devices[d][i].start, plain.timeline.devices[d][i].start, 1e-9);
          EXPECT_NEAR(events.timeline.devices[d][i].end, plain.timeline.devices[d][i].end, 1e-9);
        }
      }
    }
  }
}

// Work moves, and none is lost: busy times add up to what all actions take.
TEST(Exchange, MovesWorkAndLosesNone) {
  for (const Size& size : {Size{2, 2, 4, 1}, {4, 3, 8, 1}, {4, 2, 8, 2}, {3, 2, 5, 1}}) {
    for (const ExchangeMode exchange : {ExchangeMode::Paired, ExchangeMode::Levelled}) {
      const Program program = lowered(size, exchange, size.devices == 3);
      const SliceCosts costs(size.slices, 0.6, 2, 0.05);
      const Result result = evaluate(program, costs, {.memory = false});
      ASSERT_FALSE(result.deadlock);
      EXPECT_NEAR(result.bubble_fraction, bubble_of(program, simulate(program, costs), costs), 1e-9);
      for (const DeviceResult& device : result.devices) {
        const IdleCauses& idle = device.time.idle;
        EXPECT_NEAR(device.time.busy + idle.total(), result.makespan, 1e-9);
        EXPECT_GE(std::min({idle.ramp, idle.transfer, idle.copy, idle.imbalance, idle.dependency}), 0);
      }
      std::size_t served = 0;
      for (const auto& spans : result.timeline.exchanges)
        served += std::ranges::count(spans, false, &schedule::ExchangeSpan::waiting);
      EXPECT_EQ(served, 2 * program.exchanges.size()) << "once a layer";
    }
  }
}

TEST(Exchange, WhatIsServedWhileBytesAreInFlightLeavesNoNegativeWait) {
  const Program program = schedule::parse_program(
      "penstock program 1\nname x\nstages 2\nslices 1\n"
      "device 0\n0 0F0\n1 0RECV_B0 from 1\n2 0B0 after 1\ndevice 1\n0 1SEND_B0 to 0\n",
      "x");
  using schedule::Event;
  schedule::Timeline timeline;
  timeline.devices = {{Event{0, 1}, Event{0, 4}, Event{4, 5}}, {Event{1, 4}}};
  timeline.exchanges = {{schedule::ExchangeSpan{.start = 2, .end = 3}}, {}};
  const DeviceTime time = account_time(program, timeline)[0];
  EXPECT_EQ(time.busy, 3);
  EXPECT_EQ(time.idle.transfer, 2);
  EXPECT_EQ(time.idle.dependency, 0);
}

// Times as a run would measure them: of every op with what it waited and served, and of all exchange.
TEST(Exchange, IsFoundAgainInTheTimesOfARun) {
  for (const Size& size : {Size{2, 2, 4, 1}, {4, 3, 8, 1}, {4, 2, 8, 2}}) {
    const Program program = lowered(size, ExchangeMode::Levelled);
    const SliceCosts costs(size.slices, 0.6, 3);
    const schedule::Timeline run = simulate(program, costs).timeline;
    const MeasuredCosts measured(program, run, costs);
    EXPECT_NEAR(simulate(program, measured).timeline.makespan(), run.makespan(), 0.01 * run.makespan());
    for (int d = 0; d < program.device_count(); ++d) {
      for (std::uint32_t i = 0; i < program.devices[d].ops.size(); ++i) {
        const Op& op = program.devices[d].ops[i];
        if (is_action(op.kind)) {
          EXPECT_NEAR(measured.seconds(d, i, op), costs.seconds(d, i, op), 1e-9);
        }
      }
    }
  }
}

// Nobody reads the halves before a document, so what moves is a greater share than of all halves.
TEST(Exchange, OfDocumentsIsFoundAgainInTheTimesOfARun) {
  const auto work = [](const schedule::PassKey& pass) {
    const int first = 2 * (pass.key.slice - pass.key.slice % 4);
    schedule::SliceWork found{.own = 1, .halves = std::vector<double>(2 * pass.key.slice, 1)};
    std::fill_n(found.halves.begin(), first, 0.0);
    return found;
  };
  const Program program = schedule::lower(schedule::generate("slimpipe", schedule::request(4, 2, 8, 1)),
                                          {.exchange = {.mode = ExchangeMode::Levelled, .work = work}});
  const SliceCosts costs(8, 0.6, 3, 0, 4);
  const schedule::Timeline run = simulate(program, costs).timeline;
  const MeasuredCosts measured(program, run, costs);
  EXPECT_NEAR(simulate(program, measured).timeline.makespan(), run.makespan(), 0.01 * run.makespan());
  bool of_second = false;
  for (const schedule::Exchange& exchange : program.exchanges) {
    const Op op{.key = exchange.of.key, .kind = schedule::op_kind(exchange.of.kind)};
    const auto moved = [&](const Costs& of) {
      return of.attention(exchange.owner, 0, op).seconds * of.share_of_attention(exchange);
    };
    EXPECT_NEAR(moved(measured), moved(costs), 1e-9);
    of_second |= exchange.first_half >= 8;
  }
  EXPECT_TRUE(of_second);
}

// A slow device is slow at what it serves too, and the others are not at what they serve it.
TEST(Exchange, IsServedAtTheSpeedOfTheServer) {
  const Program program = lowered({4, 2, 8, 1}, ExchangeMode::Levelled);
  const SliceCosts base(8, 0.5, 4);
  const std::vector<Override> slow{parse_override("device:0=10", 4)};
  const schedule::Timeline timeline = simulate(program, WhatIf(base, slow, 4)).timeline;
  bool serves = false, is_served = false;
  for (int d = 0; d < 4; ++d) {
    for (const schedule::ExchangeSpan& span : timeline.exchanges[d]) {
      if (span.waiting) continue;
      const schedule::Exchange& exchange = program.exchanges[span.exchange];
      const Op op{.key = exchange.of.key, .kind = schedule::op_kind(exchange.of.kind)};
      const Seconds whole = base.attention(exchange.owner, 0, op).seconds / 4;
      EXPECT_NEAR(span.end - span.start, (d == 0 ? 10 : 1) * whole * base.share_of_attention(exchange), 1e-9);
      serves |= d == 0;
      is_served |= exchange.owner == 0;
    }
  }
  EXPECT_TRUE(serves && is_served);
}

TEST(Exchange, EvensOutSlotsOfALongSequence) {
  const SliceCosts costs(16, 0.8, 4);
  const auto makespan = [&](ExchangeMode exchange) {
    return simulate(lowered({4, 4, 16, 1}, exchange), costs).timeline.makespan();
  };
  EXPECT_LT(makespan(ExchangeMode::Paired), 0.95 * makespan(ExchangeMode::Off));
  EXPECT_LT(makespan(ExchangeMode::Levelled), makespan(ExchangeMode::Paired));
}

}  // namespace
}  // namespace penstock::sim
