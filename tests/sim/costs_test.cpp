// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "schedule/text.h"
#include "sim/costs/measured.h"
#include "sim/costs/table.h"
#include "sim/costs/unit.h"
#include "sim/costs/what_if.h"
#include "sim/lowering.h"
#include "sim/random_costs.h"
#include "sim/result.h"
#include "sim/simulate.h"

namespace penstock::sim {
namespace {

using schedule::OpKind;
using schedule::Program;

constexpr TableExtent kExtent{.stages = 4, .slices = 2, .devices = 2};

std::string error_of(auto action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_error(const std::string& text) {
  return error_of([&] { parse_cost_table(text, "my.costs", kExtent); });
}

Program one_f_one_b(int p, int m) {
  return lower(schedule::generate("1f1b", schedule::request(p, m)),
               {.transfer_bytes = [](int, int) { return 1000; }});
}

TEST(UnitCosts, RefusesTimesThatAreNone) {
  EXPECT_EQ(error_of([] { UnitCosts({.backward = -1}); }),
            "--backward: -1.000000 is not a time; expected finite seconds, zero or more");
  EXPECT_NE(error_of([] { UnitCosts({.transfer = NAN}); }).find("--transfer: nan"), std::string::npos);
  EXPECT_NE(error_of([] { UnitCosts({.weight = INFINITY}); }).find("--weight: inf"), std::string::npos);
}

TEST(CostTable, LaterLinesOverrideAndStarsStandForAll) {
  const CostTable table = parse_cost_table(
      "# times\nF\t*\t*\t0.5\nF 3 * 1.5 # slower\nF 3 1 2\nB * * 1\n\nlink * * 1e-3 1000\nlink 0 1 0 "
      "inf\nrecord 2 * 7 8 9\nmessage * 5\nmessage 1 6\n",
      "my.costs", kExtent);
  const auto forward = [&](int stage, int slice) {
    return table.seconds(0, 0, {.key = schedule::make_key(stage, 0, slice), .kind = OpKind::Forward});
  };
  EXPECT_EQ(forward(0, 1), 0.5);
  EXPECT_EQ(forward(3, 0), 1.5);
  EXPECT_EQ(forward(3, 1), 2);
  const schedule::Op send{.kind = OpKind::SendForward, .peer = 0, .bytes = 500};
  EXPECT_EQ(table.transfer(1, 0, send).occupied, 0.5);
  EXPECT_EQ(table.transfer(1, 0, send).latency, 1e-3);
  EXPECT_EQ(table.record({2, 5, 1}).weight_record, 8);
  EXPECT_EQ(table.record({1, 5, 1}).record, 0);
  EXPECT_EQ(table.message(0), 5);
  EXPECT_EQ(table.message(1), 6);
}

TEST(CostTable, WrongEntriesAreNamed) {
  EXPECT_EQ(parse_error("F * * 1\nF 0 * -2\n"),
            "my.costs: line 2: \"-2\" is not a valid time in seconds; expected a finite number, zero or "
            "more");
  for (const char* bandwidth : {"-5", "fast"}) {
    EXPECT_EQ(parse_error("link * * 1 " + std::string(bandwidth)),
              "my.costs: line 1: \"" + std::string(bandwidth) +
                  "\" is not a valid bandwidth; expected more than 0, or inf");
  }
  EXPECT_EQ(parse_error("F 4 0 1"),
            "my.costs: line 1: \"4\" is not a valid stage; expected 0 to 3, or * for all");
  EXPECT_EQ(parse_error("STEP 1 * 1"), "my.costs: line 1: \"1\": STEP has no stages; expected *");
  EXPECT_EQ(parse_error("REDUCE_GRAD 1 0 1"),
            "my.costs: line 1: \"0\": REDUCE_GRAD has no slices; expected *");
  EXPECT_EQ(parse_error("REDUCE_GRAD 1 * 1\nSTEP * * 1\nEMBED_GRAD * * 1"), "no error");
  EXPECT_EQ(parse_error("\xEF\xBB\xBF# of another program\nSTEP * * 1"), "no error");
  EXPECT_EQ(parse_error("G * * 1"),
            "my.costs: line 1: \"G\" is not an entry; expected link, message, record or one of F, B, I, W, "
            "OFFLOAD, RELOAD, REDUCE_GRAD, GATHER_WEIGHTS, RELEASE_WEIGHTS, STEP, LOSS, EMBED_GRAD");
  for (const char* line :
       {"F * * nan",         "F * * inf",          "F * * 1s",      "F * *",        "F * * 1 2",
        "G * * 1",           "SEND_F * * 1",       "F -1 * 1",      "F * 2 1",      "link * * 1",
        "link * * 0 0",      "link 2 0 0 1",       "link * * -1 5", "link * * 0 5", "record * * 1 2",
        "record * * 1 2 -3", "record * * 1 2 1.5", "message * 1 1", "message 2 1",  "message * -1",
        "message * 0.5"}) {
    EXPECT_EQ(parse_error(line).rfind("my.costs: line 1: ", 0), 0u) << line;
  }
}

TEST(CostTable, OfMoreDevicesThanItsLinksAllowIsRefused) {
  EXPECT_EQ(error_of([&] { CostTable({.devices = 65536}); }),
            "a table of costs is for at most 4096 devices; there are 65536");
}

TEST(CostTable, AMissingTimeIsNamed) {
  const Program program = one_f_one_b(2, 2);
  const CostTable table = parse_cost_table("F * * 1\nB 0 * 1\n", "x", extent_of(program));
  EXPECT_EQ(error_of([&] { table.require_complete(program); }),
            "no time for B of stage 1, slice 0; add a line \"B 1 0 SECONDS\"");
}

TEST(MeasuredCosts, ReplayingASimulationGivesItsTimesAgain) {
  const Program program = one_f_one_b(4, 8);
  const RandomCosts costs(5, {.latency = 0.25});
  const Simulation run = simulate(program, costs);
  const Simulation replay = simulate(program, MeasuredCosts(program, run.timeline, costs));
  for (int d = 0; d < 4; ++d) {
    for (std::size_t i = 0; i < program.devices[d].ops.size(); ++i) {
      EXPECT_NEAR(replay.timeline.devices[d][i].end, run.timeline.devices[d][i].end, 1e-9);
    }
  }
}

// Device 1 comes two seconds after device 0, whose event has the wait.
TEST(MeasuredCosts, ACollectiveTakesWhatItTookOnceAllHadCome) {
  Program program{"x", 1, {1}, std::vector<schedule::DeviceProgram>(2)};
  const std::vector<std::uint32_t> first{0};
  for (int d = 0; d < 2; ++d) {
    program.devices[d].append({.kind = OpKind::BackwardWeight});
    program.devices[d].append({.kind = OpKind::ReduceGradients, .peer = 1 - d}, first);
  }
  const schedule::Timeline run{.devices = {{{0, 1}, {1, 4}}, {{0, 3}, {3, 4}}}};
  const UnitCosts bytes;
  const MeasuredCosts costs(program, run, bytes);
  EXPECT_EQ(costs.seconds(0, 1, program.devices[0].ops[1]), 1);
  EXPECT_EQ(simulate(program, costs).timeline.makespan(), 4);
}

TEST(MeasuredCosts, CopiesKeepTheirTimesWhereOthersTakeTheProcessors) {
  Program program{"x", 1, {1}, std::vector<schedule::DeviceProgram>(1)};
  program.devices[0].append({.kind = OpKind::Forward});
  program.devices[0].append({.kind = OpKind::Offload});
  const UnitCosts bytes;
  MeasuredCosts costs(program, {.devices = {{{0, 4}, {4, 7}}}}, bytes);
  costs.take_processor_seconds(program, {{1, 0}});
  EXPECT_EQ(costs.seconds(0, 0, program.devices[0].ops[0]), 1);
  EXPECT_EQ(costs.seconds(0, 1, program.devices[0].ops[1]), 3);
}

TEST(MeasuredCosts, AveragesHoldForAnotherNumberOfMicroBatches) {
  const Program measured = one_f_one_b(3, 4), other = one_f_one_b(3, 50);
  CostTable costs(extent_of(measured));
  for (int stage = 0; stage < 3; ++stage) {
    costs.set_seconds(OpKind::Forward, stage, 0, 1 + stage);
    costs.set_seconds(OpKind::Backward, stage, 0, 3 - stage);
  }
  costs.set_link(0, 1, {.latency = 0.125});
  const CostTable averages =
      average(measured, simulate(measured, costs).timeline, extent_of(measured), "run");
  averages.require_complete(other);
  EXPECT_NEAR(simulate(other, averages).timeline.makespan(), simulate(other, costs).timeline.makespan(),
              1e-9);
}

// What was not measured is not free.
TEST(MeasuredCosts, OfARunAreOnlyForTheKindsOfOpsThatItHas) {
  const Program run = lower(schedule::generate("slimpipe", schedule::request(2, 2, 8)));
  const CostTable costs = average(run, simulate(run, UnitCosts{}).timeline, extent_of(run), "run");
  const schedule::Schedule sliced = schedule::generate("slimpipe", schedule::request(2, 3, 8));
  const auto lacking = [&](const schedule::Lowering& lowering) {
    return error_of([&] { costs.require_complete(lower(sliced, lowering)); });
  };
  EXPECT_EQ(lacking({}), "no error");
  EXPECT_EQ(lacking({.vocabulary = {.parallel = true}}),
            "no time for LOSS of stage 1, slice 0: the run lacks it; give one that has it, or a table of "
            "costs");
  EXPECT_NE(lacking(unit_lowering(1)).find("no time for OFFLOAD of stage 0, slice 0: the run lacks it"),
            std::string::npos);

  const Program plain = one_f_one_b(2, 2);
  const CostTable whole = average(plain, simulate(plain, UnitCosts{}).timeline, extent_of(plain), "run");
  EXPECT_NE(error_of([&] {
              whole.require_complete(lower(schedule::generate("zb-h1", schedule::request(2, 2))));
            }).find("no time for I of stage 0, slice 0: the run lacks it"),
            std::string::npos);
}

TEST(MeasuredCosts, ATimelineThatIsIncompleteIsRefused) {
  const Program program = one_f_one_b(2, 2);
  const UnitCosts costs;
  const schedule::Timeline whole = simulate(program, costs).timeline;
  schedule::Timeline cut = whole, open = whole, short_of = whole;
  cut.devices.pop_back();
  open.devices[1][3].end = -1;
  short_of.devices[1].pop_back();
  EXPECT_EQ(error_of([&] { MeasuredCosts(program, cut, costs); }),
            "timeline: 1 devices; expected the 2 of 1f1b");
  EXPECT_NE(error_of([&] { MeasuredCosts(program, open, costs); }).find("timeline of device 1: op 3"),
            std::string::npos);
  EXPECT_NE(error_of([&] { MeasuredCosts(program, short_of, costs); }).find("device 1"), std::string::npos);
}

TEST(WhatIf, ASlowerDeviceHoldsUpThePipelineByItsOwnWork) {
  const Program program = one_f_one_b(4, 64);
  const UnitCosts base;
  const std::vector<Override> slower{parse_override("device:2=2", 4)};
  const Result after = evaluate(program, WhatIf(base, slower, 4));
  EXPECT_EQ(after.devices[2].time.busy, 2 * 64 * 3);
  EXPECT_EQ(after.devices[1].time.busy, 64 * 3);
  // Two forwards come before it, two backwards after it, and it waits one unit for the first gradient.
  EXPECT_EQ(after.makespan, 2 * 1 + 2 * 64 * 3 + 1 + 2 * 2);
}

TEST(WhatIf, FactorsOfKindsAndLinksMultiply) {
  const UnitCosts base({.transfer = 3});
  const std::vector<Override> overrides{parse_override("kind:W=0.5", 2), parse_override("kind:W=4", 2),
                                        parse_override("device:1=3", 2), parse_override("link:0-1=10", 2)};
  const WhatIf changed(base, overrides, 2);
  EXPECT_EQ(changed.seconds(1, 0, {.kind = OpKind::BackwardWeight}), 6);
  EXPECT_EQ(changed.seconds(0, 0, {.kind = OpKind::Forward}), 1);
  EXPECT_EQ(changed.transfer(0, 0, {.kind = OpKind::SendForward, .peer = 1}).latency, 30);
  EXPECT_EQ(changed.transfer(1, 0, {.kind = OpKind::SendBackward, .peer = 0}).latency, 3);
}

TEST(WhatIf, WrongOverridesAreNamed) {
  for (const char* text :
       {"", "device", "device:1", "device:4=2", "device:x=2", "kind:X=2", "kind:SEND_F=2", "link:1=2",
        "link:0-9=2", "planet:1=2", "device:1=-1", "device:1=nan", "device:1=1e13", "=:"}) {
    EXPECT_EQ(error_of([&] { parse_override(text, 4); }).rfind("what-if \"", 0), 0u) << text;
  }
}

TEST(WhatIf, ChangesOfWhatTheProgramLacksAndSecondOnesAreRefused) {
  const Program program = one_f_one_b(4, 8);
  const UnitCosts base;
  const auto said = [&](const std::vector<std::string>& changes) {
    return error_of([&] { evaluate_changed(program, base, changes); });
  };
  EXPECT_EQ(said({"kind:B=2", "kind:F=2", "device:3=2", "link:0-1=2", "link:1-0=2"}), "no error");
  EXPECT_NE(said({"kind:W=2"}).find("what-if \"kind:W\": 1f1b has no W"), std::string::npos)
      << said({"kind:W=2"});
  EXPECT_NE(said({"link:0-2=2"}).find("device 0 sends nothing to device 2"), std::string::npos)
      << said({"link:0-2=2"});
  for (const char* change : {"kind:F=", "device:1=", "link:0-1="}) {
    const std::string text = said({change + std::string("2"), change + std::string("3")});
    EXPECT_NE(text.find("given twice; keep one"), std::string::npos) << change << text;
  }
}

TEST(WhatIf, FactorsThatMultiplyBeyondTheirLimitAreRefused) {
  const UnitCosts base;
  const std::vector<Override> overrides{parse_override("kind:W=1e9", 2), parse_override("device:1=1e9", 2)};
  EXPECT_NE(error_of([&] { WhatIf(base, overrides, 2); }).find("multiply to 1e+18"), std::string::npos);
  const std::vector<Override> one_link(2, parse_override("link:0-1=1e9", 2));
  EXPECT_NE(error_of([&] { WhatIf(base, one_link, 2); }).find("multiply to 1e+18"), std::string::npos);
}

TEST(WhatIf, FactorsOfOtherDevicesAndLinksDoNotMultiply) {
  const UnitCosts base;
  std::vector<Override> overrides;
  for (int device = 0; device < 16; ++device) {
    overrides.push_back(parse_override("device:" + std::to_string(device) + "=10", 17));
    overrides.push_back(
        parse_override("link:" + std::to_string(device) + "-" + std::to_string(device + 1) + "=10", 17));
  }
  EXPECT_EQ(WhatIf(base, overrides, 17).seconds(3, 0, {.kind = OpKind::Forward}), 10);
}

class AnswersEverything final : public Costs {
 public:
  Seconds seconds(int, std::uint32_t, const schedule::Op&) const override { return 3; }
  Transfer transfer(int, std::uint32_t, const schedule::Op&) const override { return {5, 7}; }
  AttentionShare attention(int, std::uint32_t, const schedule::Op&) const override { return {11, 13}; }
  AttentionShare served_attention(int, int, std::uint32_t, const schedule::Op&) const override {
    return {31, 37};
  }
  double share_of_attention(const schedule::Exchange&) const override { return 0.5; }
  RecordBytes record(const schedule::Key&) const override { return {.record = 17}; }
  ActionBytes action(int, const schedule::Op&) const override { return {.temporary = 19}; }
  StageBytes stage(int number) const override { return {23 + number, 29}; }
};

TEST(WhatIf, WithoutOverridesAnswersAsItsBase) {
  const AnswersEverything base;
  const WhatIf same(base, {}, 2);
  EXPECT_EQ(same.seconds(0, 0, {.kind = OpKind::Forward}), 3);
  EXPECT_EQ(same.transfer(0, 0, {.kind = OpKind::SendForward, .peer = 1}).latency, 7);
  EXPECT_EQ(same.attention(0, 0, {.kind = OpKind::Forward}).layers, 13);
  EXPECT_EQ(same.served_attention(1, 0, 0, {.kind = OpKind::Forward}).seconds, 31);
  EXPECT_EQ(same.share_of_attention({}), 0.5);
  EXPECT_EQ(same.record({}).record, 17);
  EXPECT_EQ(same.action(0, {.kind = OpKind::Forward}).temporary, 19);
  EXPECT_EQ(same.stage(1).weights, 24);
  EXPECT_EQ(same.stage(1).gradients, 29);
}

TEST(MeasuredCosts, HaveTheBytesOfTheirBase) {
  const AnswersEverything bytes;
  const Program program = one_f_one_b(2, 2);
  const MeasuredCosts costs(program, simulate(program, UnitCosts{}).timeline, bytes);
  EXPECT_EQ(costs.record({}).record, 17);
  EXPECT_EQ(costs.action(0, {.kind = OpKind::Forward}).temporary, 19);
  EXPECT_EQ(costs.stage(0).weights, 23);
}

TEST(MeasuredCosts, OfSlicesGiveAScheduleWithoutThemWholeActionsAndMessages) {
  const Program sliced = lower(schedule::generate("slimpipe", schedule::request(2, 2, 4)));
  const schedule::Timeline run = simulate(sliced, UnitCosts({.transfer = 0.25})).timeline;
  const CostTable whole = average(sliced, run, {.stages = 2, .slices = 1, .devices = 2}, "run");
  EXPECT_NEAR(*whole.find_seconds(OpKind::Forward, 0, 0), 4, 1e-9);
  const schedule::Op send{.kind = OpKind::SendForward, .peer = 1, .bytes = 1000};
  EXPECT_NEAR(whole.transfer(0, 0, send).latency, 4 * 0.25, 1e-9);
}

TEST(MeasuredCosts, OfSlicesGiveAScheduleWithoutThemTheOptimizersStep) {
  const Program sliced = lower(schedule::generate("slimpipe", schedule::request(2, 2, 4)));
  const CostTable costs = parse_cost_table("F * * 1\nB * * 2\nSTEP * * 5\n", "my.costs", extent_of(sliced));
  const schedule::Timeline run = simulate(sliced, costs).timeline;
  const CostTable whole = average(sliced, run, {.stages = 2, .slices = 1, .devices = 2}, "run");
  EXPECT_NEAR(*whole.find_seconds(OpKind::OptimizerStep, 0, 0), 5, 1e-9);
  EXPECT_NEAR(*without_slices(costs).find_seconds(OpKind::OptimizerStep, 0, 0), 5, 1e-9);
  EXPECT_NEAR(*whole.find_seconds(OpKind::Forward, 1, 0), 4, 1e-9);
}

// The whole micro-batches are alike.
TEST(MeasuredCosts, OfMicroBatchesOfUnequalSlicesAreThoseOfTheNumberAskedFor) {
  const Program uneven = lower(schedule::parse_csv(
      "0F0.0,0F0.1,0F1.0,0F1.1,0F1.2,0F1.3,0B0.1,0B0.0,0B1.3,0B1.2,0B1.1,0B1.0\n", "uneven.csv"));
  schedule::Timeline run;
  run.devices.resize(1);
  Seconds now = 0;
  for (const schedule::Op& op : uneven.devices[0].ops) {
    const Seconds took = op.kind == OpKind::OptimizerStep ? 3 : 8.0 / uneven.slices[op.key.micro_batch];
    run.devices[0].push_back({now, now + took});
    now += took;
  }
  for (const auto& [slices, seconds] : {std::pair{1, 8.0}, {2, 4.0}, {4, 2.0}}) {
    const CostTable table = average(uneven, run, {.stages = 1, .slices = slices, .devices = 1}, "run");
    for (int slice = 0; slice < slices; ++slice) {
      for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
        EXPECT_NEAR(*table.find_seconds(kind, 0, slice), seconds, 1e-9) << slices;
    }
    EXPECT_NEAR(*table.find_seconds(OpKind::OptimizerStep, 0, 0), 3, 1e-9) << slices;
  }
  EXPECT_NE(error_of([&] { average(uneven, run, {.stages = 1, .slices = 3, .devices = 1}, "run"); }),
            "no error");
}

TEST(MeasuredCosts, OfARunAreForSchedulesWithAsManySlicesInEveryMicroBatch) {
  const schedule::Schedule even = schedule::generate("slimpipe", schedule::request(2, 2, 4));
  EXPECT_EQ(error_of([&] { require_even_slices(even, "run"); }), "no error");
  schedule::Schedule uneven = even;
  uneven.slices = {4, 2};
  EXPECT_NE(error_of([&] { require_even_slices(uneven, "run"); }).find("run: a run's mean times"),
            std::string::npos);
}

// Their vocabulary's sum has the number after the last stage's.
TEST(MeasuredCosts, OfReplicasWithAShardedVocabularyAverageStagesAlone) {
  const Program program =
      lower(schedule::generate("slimpipe", schedule::request(2, 2, 4)),
            {.vocabulary = {.parallel = true}, .replicas = {.gradient_bytes = [](int) { return 8; }}});
  const CostTable table =
      average(program, simulate(program, UnitCosts{}).timeline, extent_of(program), "run");
  for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) {
    for (int stage = 0; stage < 2; ++stage)
      EXPECT_NEAR(*table.find_seconds(kind, stage, 0), kind == OpKind::Forward ? 1 : 2, 1e-12);
  }
}

}  // namespace
}  // namespace penstock::sim
