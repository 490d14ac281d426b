// SPDX-License-Identifier: Apache-2.0
// What check() says about programs.
#include <gtest/gtest.h>

#include "schedule/check/check.h"
#include "schedule/passes/lower.h"
#include "schedule/program_checks.h"
#include "schedule/program_examples.h"
#include "schedule/program_text.h"
#include "schedule/random_execution.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

Program lowered(std::string_view csv) {
  return lower(parse_csv(csv, "test"), {.transfer_bytes = [](int, int) { return Bytes{64}; }});
}

std::string first_in(const std::string& text) { return first_finding(parse_program(text, "test")); }

// Two stages on two devices, one micro-batch.
const std::string kHead = "penstock program 1\nname test\nstages 2\nslices 1\n";
const std::string kDevice0 =
    "device 0\n0 0F0\n1 0SEND_F0 to 1 bytes 8 after 0\n2 0RECV_B0 from 1 bytes 8\n3 0B0 after 2\n";
const std::string kDevice1 =
    "device 1\n0 1RECV_F0 from 0 bytes 8\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 bytes 8 after 2\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The program above with one piece of text replaced.
std::string first_with(const std::string& from, const std::string& to) {
  return first_in(replaced(kHead + kDevice0 + kDevice1, from, to));
}

TEST(CheckProgram, LoweredSchedulesHaveNoFindings) {
  int programs = 0;
  for (const Schedule& schedule : example_schedules()) {
    for (const bool tied : {false, true}) {
      Lowering options;
      options.gradients.tied_embeddings = tied && schedule.name != "dualpipe";
      const Program program = lower(schedule, options);
      EXPECT_EQ(first_finding(program), "legal") << schedule.name << "\n" << to_text(program);
      ++programs;
    }
  }
  EXPECT_GT(programs, 100);
}

TEST(CheckProgram, EveryDeletedOpIsFound) {
  for (const char* csv : {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "0F0,3F0,3I0,0B0,3W0\n1F0,2F0,2B0,1B0\n"}) {
    const Program program = lowered(csv);
    ASSERT_EQ(first_finding(program), "legal");
    for (int device = 0; device < program.device_count(); ++device) {
      for (std::uint32_t i = 0; i < program.devices[device].ops.size(); ++i) {
        EXPECT_NE(first_finding(without(program, device, i)), "legal")
            << to_token(program.devices[device].ops[i], false);
      }
    }
  }
}

TEST(CheckProgram, LegalProgramsRunRightInEveryRandomExecution) {
  for (const char* csv : {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "0F0,3F0,3I0,0B0,3W0\n1F0,2F0,2B0,1B0\n"}) {
    const Program program = lowered(csv);
    for (unsigned seed = 0; seed < 50; ++seed) EXPECT_EQ(RandomExecution(program, seed).run(), "");
  }
}

TEST(CheckProgram, AWaitWhoseLossBreaksAnExecutionIsMissed) {
  const Program program = lowered("0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  int broken = 0;
  for (int device = 0; device < program.device_count(); ++device) {
    for (std::size_t i = 0; i < program.devices[device].ops.size(); ++i) {
      Program loose = program;
      loose.devices[device].ops[i].after_count = 0;
      bool fails = false;
      for (unsigned seed = 0; seed < 40 && !fails; ++seed)
        fails = !RandomExecution(loose, seed).run().empty();
      EXPECT_EQ(first_finding(loose) != "legal", fails) << "device " << device << ", op " << i << "\n"
                                                        << to_text(program);
      broken += fails;
    }
  }
  EXPECT_EQ(broken, 12);
}

TEST(CheckProgram, AComputeOpWaitsForWhatItReceives) {
  EXPECT_EQ(first_with("1F0 after 0", "1F0"),
            "order: device 1, position 1: 1F0 may start before 1RECV_F0 (device 1, position 0) is done: it "
            "does not wait for it");
  EXPECT_EQ(first_with("0B0 after 2", "0B0 after 1").substr(0, 63),
            "order: device 0, position 3: 0B0 may start before 0RECV_B0 (dev");
}

TEST(CheckProgram, WaitingMayBeImpliedByTheLanes) {
  Program program = lowered("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  DeviceProgram& row = program.devices[1];
  std::vector<std::uint32_t> receives;
  for (std::uint32_t i = 0; i < row.ops.size(); ++i) {
    if (row.ops[i].kind == OpKind::ReceiveForward) receives.push_back(i);
  }
  const auto is_forward = [](const Op& op) { return op.kind == OpKind::Forward; };
  const auto first_forward = std::find_if(row.ops.begin(), row.ops.end(), is_forward);
  const auto second_forward = std::find_if(first_forward + 1, row.ops.end(), is_forward);
  ASSERT_LT(receives[1], first_forward - row.ops.begin());
  first_forward->after_begin = static_cast<std::uint32_t>(row.after.size());
  first_forward->after_count = 2;
  row.after.insert(row.after.end(), receives.begin(), receives.end());
  second_forward->after_count = 0;
  EXPECT_EQ(first_finding(program), "legal");
  first_forward->after_count = 1;
  EXPECT_EQ(first_finding(program).substr(0, 6), "order:");
}

TEST(CheckProgram, MessagesMatchInOrderStageAndSize) {
  EXPECT_EQ(first_with("1RECV_F0 from 0 bytes 8", "1RECV_F0 from 0 bytes 9"),
            "unmatched: device 1, position 0: 1RECV_F0 of 9 bytes meets 0SEND_F0 of 8 bytes (device 0, "
            "position 1): both are message 0 of their channel");
  EXPECT_EQ(first_with("3 1SEND_B0 to 0 bytes 8 after 2\n", ""),
            "unmatched: device 0, position 2: 0RECV_B0 has no send on device 1 to meet");
  EXPECT_EQ(first_with("1 0SEND_F0 to 1 bytes 8 after 0\n2 0RECV_B0 from 1 bytes 8\n3 0B0 after 2",
                       "1 0RECV_B0 from 1 bytes 8\n2 0B0 after 1"),
            "unmatched: device 1, position 0: 1RECV_F0 has no send on device 0 to meet");
}

TEST(CheckProgram, SwappedReceivesAreUnmatched) {
  Program program = lowered("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  std::vector<Op*> receives;
  for (Op& op : program.devices[1].ops) {
    if (op.kind == OpKind::ReceiveForward) receives.push_back(&op);
  }
  std::swap(receives[0]->key.micro_batch, receives[1]->key.micro_batch);
  EXPECT_EQ(first_finding(program).substr(0, 10), "unmatched:");
}

TEST(CheckProgram, TransfersGoBetweenTheDevicesThatRunTheStages) {
  EXPECT_EQ(first_with("device 0\n0 0F0\n", "device 0\n0 0F0\n").substr(0, 5), "legal");
  EXPECT_EQ(
      first_with("0SEND_F0", "1SEND_F0"),
      "home: device 0, position 1: 1SEND_F0 is here, but its stage runs on device 1 for this micro-batch");
  EXPECT_EQ(first_with("3 1SEND_B0 to 0 bytes 8 after 2\n",
                       "3 1SEND_B0 to 0 bytes 8 after 2\n4 1SEND_F0 to 0 bytes 8 after 2\n")
                .substr(0, 32),
            "unmatched: device 1, position 4:");
  EXPECT_EQ(first_with("3 1SEND_B0 to 0 bytes 8 after 2\n",
                       "3 1SEND_B0 to 0 bytes 8 after 2\n4 1SEND_B0 to 0 bytes 8 after 2\n"),
            "duplicate: device 1, position 4: 1SEND_B0 comes a second time, also at device 1, position 3");
}

TEST(CheckProgram, WhatIsNotReceivedIsMissing) {
  const std::string device0 =
      replaced(kDevice0, "1 0SEND_F0 to 1 bytes 8 after 0\n2 0RECV_B0 from 1 bytes 8\n3 0B0 after 2",
               "1 0RECV_B0 from 1 bytes 8\n2 0B0 after 1");
  const std::string device1 =
      replaced(kDevice1, "0 1RECV_F0 from 0 bytes 8\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 bytes 8 after 2",
               "0 1F0\n1 1B0\n2 1SEND_B0 to 0 bytes 8 after 1");
  EXPECT_EQ(first_in(kHead + device0 + device1),
            "missing: device 1, position 0: 1F0 needs a result of device 0, but no RECV_F receives it");
}

const std::string kAlone = "penstock program 1\nname test\nstages 1\nslices 1,1\ndevice 0\n0 0F0\n";

TEST(CheckProgram, ARecordIsOffloadedReloadedAndThenUsed) {
  EXPECT_EQ(
      first_in(kAlone +
               "1 0OFFLOAD0 bytes 8 after 0\n2 0F1\n3 0RELOAD0 bytes 8 after 1\n4 0B0 after 3\n5 0B1\n"),
      "legal");
  EXPECT_EQ(first_in(kAlone + "1 0OFFLOAD0 bytes 8 after 0\n2 0F1\n3 0B0\n4 0B1\n"),
            "residence: device 0, position 1: 0OFFLOAD0 takes the record away, but no RELOAD brings it back");
  EXPECT_EQ(
      first_in(kAlone + "1 0OFFLOAD0 bytes 8 after 0\n2 0F1\n3 0RELOAD0 bytes 8 after 1\n4 0B0\n5 0B1\n"),
      "residence: device 0, position 4: 0B0 may start before 0RELOAD0 (device 0, position 3) is done: "
      "it does not wait for it");
  EXPECT_EQ(
      first_in(kAlone + "1 0OFFLOAD0 bytes 8 after 0\n2 0F1\n3 0RELOAD0 bytes 8\n4 0B0 after 3\n5 0B1\n")
          .substr(0, 66),
      "residence: device 0, position 3: 0RELOAD0 may start before 0OFFLOA");
  EXPECT_EQ(first_in(kAlone + "1 0F1\n2 0RELOAD0 bytes 8 after 0\n3 0B0 after 2\n4 0B1\n"),
            "residence: device 0, position 2: 0RELOAD0 brings back a record that no OFFLOAD took away");
  EXPECT_EQ(
      first_in(kAlone + "1 0OFFLOAD0 bytes 8\n2 0F1\n3 0RELOAD0 bytes 8 after 1\n4 0B0 after 3\n5 0B1\n")
          .substr(0, 6),
      "order:");
}

TEST(CheckProgram, ASendBehindASendThatWaitsIsADeadlock) {
  // Device 0 sends the second output before the first is computed; lanes are first-in-first-out.
  const std::string text =
      "penstock program 1\nname test\nstages 2\nslices 1\n"
      "device 0\n0 0F0\n1 0RECV_B0 from 1 bytes 0\n2 0SEND_F0 to 1 bytes 0 after 0,1\n3 0B0 after 1\n"
      "device 1\n0 1RECV_F0 from 0 bytes 0\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 bytes 0 after 2\n";
  const std::vector<Finding> findings = check(parse_program(text, "test"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].rule, Rule::Deadlock);
  EXPECT_EQ(findings[0].text,
            "device 0, position 2: 0SEND_F0 waits for 1SEND_B0 (device 1, position 3), which waits in the "
            "same cycle");
  EXPECT_EQ(RandomExecution(parse_program(text, "test"), 1).run(), "stuck");
}

TEST(CheckProgram, ReductionsMeetTheirPartner) {
  const std::string both =
      replaced(kDevice0, "3 0B0 after 2\n", "3 0B0 after 2\n4 0REDUCE_GRAD with 1 bytes 8 after 3\n") +
      kDevice1;
  EXPECT_EQ(first_in(kHead + both),
            "unmatched: device 0, position 4: 0REDUCE_GRAD has no collective on device 1 to meet");
  EXPECT_EQ(first_in(kHead + both + "4 1REDUCE_GRAD with 0 bytes 8 after 2\n"), "legal");
  EXPECT_EQ(first_in(kHead + both + "4 1REDUCE_GRAD with 0 bytes 9 after 2\n").substr(0, 10), "unmatched:");
}

TEST(CheckProgram, TheStepComesLastOnEveryDevice) {
  EXPECT_EQ(first_in(kHead + kDevice0 + "4 STEP\n" + kDevice1),
            "missing: STEP is missing: device 1 never runs it, although other devices do");
  EXPECT_EQ(first_in(kAlone + "1 STEP\n2 0F1\n3 0B0\n4 0B1\n"),
            "order: device 0, position 2: 0F1 runs after STEP (device 0, position 1), which must come last");
}

TEST(CheckProgram, MalformedOpsAreFoundBeforeAnythingReliesOnThem) {
  Program program = lowered("0F0,0B0\n1F0,1B0\n");
  program.devices[0].after[0] = 7;
  EXPECT_NE(first_finding(program).find("waits for op 7, which is not issued before it"), std::string::npos)
      << first_finding(program);
  program = lowered("0F0,0B0\n1F0,1B0\n");
  program.devices[1].ops[0].peer = 5;
  EXPECT_NE(first_finding(program).find("names device 5, which does not exist"), std::string::npos)
      << first_finding(program);
  program.devices[1].ops[0].peer = 0;
  program.devices[1].ops[0].after_begin = 1000;
  program.devices[1].ops[0].after_count = 1;
  EXPECT_NE(first_finding(program).find("beyond the list"), std::string::npos) << first_finding(program);
}

TEST(CheckProgram, RulesOfSchedulesHoldForPrograms) {
  EXPECT_EQ(first_in(kAlone + "1 0B0\n2 0F1\n"),
            "missing: 0B1 is missing: no device runs it, while 0F1 runs on device 0, position 2");
  EXPECT_EQ(first_in(kAlone + "1 0B0\n2 0B1\n3 0F1\n").substr(0, 6), "order:");
}

}  // namespace
}  // namespace penstock::schedule
