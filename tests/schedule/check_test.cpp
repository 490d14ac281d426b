// SPDX-License-Identifier: Apache-2.0
// What check() says about schedules, rule by rule.
#include "schedule/check/check.h"

#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

std::vector<Finding> findings_of(std::string_view csv) { return check(parse_csv(csv, "test")); }

// "rule: text" of the first finding.
std::string verdict(std::string_view csv) {
  const std::vector<Finding> findings = findings_of(csv);
  return findings.empty() ? "legal" : std::string(name_of(findings[0].rule)) + ": " + findings[0].text;
}

TEST(Check, LegalSchedulesHaveNoFindings) {
  EXPECT_EQ(verdict("0F0,0B0\n"), "legal");
  EXPECT_EQ(verdict("0F0,0F1,0B0,0B1\n,1F0,1I0,1F1,1B1,1W0\n"), "legal");
  EXPECT_EQ(verdict("0F0.0,0F0.1,0B0.1,0B0.0\n"), "legal");
  EXPECT_EQ(verdict("0F0,1F0,1B0,0B0,0REDUCE_GRAD,1REDUCE_GRAD\n"), "legal");
  EXPECT_EQ(verdict("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"), "legal");
}

TEST(Check, AStageMayLiveOnTwoDevicesForDifferentMicroBatches) {
  EXPECT_EQ(verdict("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n"), "legal");
}

TEST(Check, MissingActionsAreNamedWithAWitness) {
  EXPECT_EQ(verdict("0F0,0F1,0B0\n"),
            "missing: 0B1 is missing: no device runs it, while 0F1 runs on device 0, position 1");
  EXPECT_EQ(verdict("0F0,0I0\n"),
            "missing: 0W0 is missing: no device runs it, while 0I0 runs on device 0, position 1");
  EXPECT_EQ(verdict("0F0,0W0\n"),
            "missing: 0I0 is missing: no device runs it, while 0W0 runs on device 0, position 1");
  EXPECT_EQ(verdict("0B0,0F1,0B1\n"),
            "missing: 0F0 is missing: no device runs it, while 0B0 runs on device 0, position 0");
}

TEST(Check, ADeviceWithoutActionsIsAFinding) {
  EXPECT_EQ(verdict("0F0,0B0\n\n"), "missing: device 1 runs nothing: its row holds no action");
}

TEST(Check, OfDuplicatesTheOneAwayFromItsStageIsAtFault) {
  EXPECT_EQ(verdict("0F0,0B0,0F0\n"),
            "duplicate: device 0, position 2: 0F0 runs a second time, also at device 0, position 0");
  EXPECT_EQ(verdict("1F0,0F0,0B0\n1F0,1B0\n"),
            "duplicate: device 0, position 0: 1F0 runs a second time, also at device 1, position 0");
  EXPECT_EQ(findings_of("0F0,1F0,0B0\n1F0,1B0\n").size(), 1u);
}

TEST(Check, WholeAndSplitBackwardsDoNotMix) {
  EXPECT_EQ(verdict("0F0,0B0,0W0\n"),
            "mixed: device 0, position 2: 0W0 runs in addition to 0B0 (device 0, position 1): a backward is "
            "whole (B) or split (I and W)");
}

TEST(Check, NumbersCountWithoutGaps) {
  EXPECT_EQ(verdict("0F0,0B0\n2F0,2B0\n"),
            "range: device 1, position 0: 2F0 names stage 2, outside the schedule: no action names stage 1");
  EXPECT_EQ(verdict("0F0,0B0,0F2,0B2\n"),
            "range: device 0, position 2: 0F2 names micro-batch 2, outside the schedule: no action names "
            "micro-batch 1");
  EXPECT_EQ(verdict("0F0.0,0F0.2,0B0.2,0B0.0\n"),
            "range: device 0, position 1: 0F0.2 names slice 2 of micro-batch 0, outside the schedule: no "
            "action names slice 1 of micro-batch 0");
}

TEST(Check, AStrayNumberIsTheMistakeOfItsAction) {
  EXPECT_EQ(verdict("0F0,0F1,0B0,0B1\n1F0,1B0,1F2,1B1\n"),
            "range: device 1, position 2: 1F2 is the only action of micro-batch 2");
}

TEST(Check, SizesThatNoActionFillsAreMissing) {
  Schedule schedule = parse_csv("0F0,0B0\n", "test");
  schedule.stages = 3;
  schedule.slices = {2, 1};
  const std::vector<Finding> findings = check(schedule);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].text, "no device runs stage 1, although the schedule has 3 stages");
  EXPECT_EQ(findings[1].text, "no device runs micro-batch 1, although the schedule has 2 micro-batches");
  EXPECT_EQ(findings[2].text, "no device runs slice 1 of micro-batch 0, although it has 2 slices");
}

TEST(Check, AMicroBatchOfAStageLivesOnOneDevice) {
  EXPECT_EQ(verdict("0F0,0B0,1B0\n1F0\n"),
            "home: device 1, position 0: 1F0 runs here, but 1B0 on device 0, position 2: a stage of a "
            "micro-batch lives on one device");
}

TEST(Check, AnActionComesAfterWhatItNeedsOnItsDevice) {
  EXPECT_EQ(verdict("0B0,0F0\n"),
            "order: device 0, position 0: 0B0 runs before 0F0 (device 0, position 1), which it needs");
  EXPECT_EQ(verdict("0F0.1,0F0.0,0B0.1,0B0.0\n").substr(0, 66),
            "order: device 0, position 0: 0F0.1 runs before 0F0.0 (device 0, po");
  EXPECT_EQ(verdict("0F0.0,0F0.1,0B0.0,0B0.1\n").substr(0, 66),
            "order: device 0, position 2: 0B0.0 runs before 0B0.1 (device 0, po");
  EXPECT_EQ(verdict("0F0,0W0,0I0\n").substr(0, 50), "order: device 0, position 1: 0W0 runs before 0I0 (");
}

TEST(Check, ACircleAcrossDevicesIsADeadlockOfEachOfThem) {
  const std::vector<Finding> findings = findings_of("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n");
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].rule, Rule::Deadlock);
  EXPECT_EQ(findings[0].text,
            "device 0, position 1: 0B0 waits for 1B0 (device 1, position 2), which comes after 1F1 (device "
            "1, position 0), which waits in the same cycle");
  EXPECT_EQ(findings[1].text,
            "device 1, position 0: 1F1 waits for 0F1 (device 0, position 2), which comes after 0B0 (device "
            "0, position 1), which waits in the same cycle");
}

TEST(Check, OverlappedActionsMustNotNeedEachOther) {
  EXPECT_EQ(verdict("(0F0;0B0)OVERLAP_F_B\n"),
            "order: device 0, position 1: 0B0 needs 0F0, which it overlaps");
  EXPECT_EQ(verdict("0F0,(0F1;0F2)OVERLAP_F_B,0B0,0B1,0B2\n"),
            "order: device 0, position 1: 0F1 overlaps what follows it, which is not one forward with one "
            "backward");
  EXPECT_EQ(verdict("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n").substr(0, 9), "deadlock:");
  EXPECT_EQ(verdict("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n"), "legal");
}

TEST(Check, GradientsAreReducedOnceAfterAllBackwardsOfTheStage) {
  EXPECT_EQ(verdict("0F0,0REDUCE_GRAD,0B0\n"),
            "order: device 0, position 1: 0REDUCE_GRAD runs before 0B0 (device 0, position 2), whose "
            "gradients it must include");
  EXPECT_EQ(verdict("0F0,0I0,0REDUCE_GRAD,0W0\n").substr(0, 58),
            "order: device 0, position 2: 0REDUCE_GRAD runs before 0W0 ");
  EXPECT_EQ(verdict("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n"),
            "duplicate: device 0, position 3: 0REDUCE_GRAD runs a second time, also at device 0, position 2");
  EXPECT_EQ(verdict("0F0,0B0,0REDUCE_GRAD\n1F0,1B0\n"),
            "missing: 1REDUCE_GRAD is missing: device 1 never runs it, although other gradients are reduced");
  EXPECT_EQ(
      verdict("0F0,0B0,0REDUCE_GRAD,1REDUCE_GRAD\n1F0,1B0,1REDUCE_GRAD\n"),
      "home: device 0, position 3: 1REDUCE_GRAD reduces a stage whose backward this device does not run");
}

TEST(Check, AtMostLimitFindingsAreGiven) {
  const Schedule schedule = parse_csv("0B0,0B1,0B2,0B3\n", "test");
  EXPECT_EQ(check(schedule, 3).size(), 3u);
  EXPECT_EQ(check(schedule).size(), 4u);
}

TEST(Check, FewActionsWithHugeNumbersAreJudgedQuickly) {
  EXPECT_EQ(verdict("1048575F1048575.32766\n").substr(0, 6), "range:");
  std::string diagonal;
  for (int k = 0; k < 3000; ++k)
    diagonal +=
        std::to_string(k) + "F" + std::to_string(k) + "," + std::to_string(k) + "B" + std::to_string(k) + ",";
  EXPECT_EQ(verdict(diagonal + "0F1\n"), "missing: 0F2 is missing: no device runs it");
}

// As no micro-batch has a slice 0; a table of stages and micro-batches would take terabytes.
TEST(Check, NumbersWithoutSlicesTakeNoMemory) {
  constexpr int k = 600'000;
  Schedule schedule;
  std::vector<Action>& row = schedule.devices.emplace_back();
  for (int stage = 0; stage < k; ++stage) row.push_back(forward(stage, 0, 1));
  for (int j = 1; j < k; ++j) row.push_back(forward(0, j, 1));
  infer_sizes(schedule);
  EXPECT_EQ(check(schedule).size(), 20u);
}

TEST(Check, LargeSchedulesAreLegalToo) {
  const Schedule schedule = generate("1f1b", request(64, 4096));
  EXPECT_TRUE(check(schedule).empty());
}

}  // namespace
}  // namespace penstock::schedule
