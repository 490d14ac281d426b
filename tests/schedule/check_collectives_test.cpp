// SPDX-License-Identifier: Apache-2.0
// What check() says about collectives.
#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/meeting.h"
#include "schedule/passes/lower.h"
#include "schedule/program_checks.h"
#include "schedule/program_text.h"
#include "schedule/random_execution.h"

namespace penstock::schedule {
namespace {

const std::string kOneSlice = "penstock program 1\nname test\nstages 2\nslices 1\n";

std::string first_of(const std::string& text) {
  return first_finding(parse_program(kOneSlice + text, "test"));
}

// Two stages on one device, with `ops` after their four actions.
std::string first_after(const std::string& ops) {
  return first_of("device 0\n0 0F0\n1 1F0\n2 1B0\n3 0B0\n" + ops);
}

TEST(Meetings, GroupsOutsideThePipelineAreOneDevicesOwn) {
  const auto over = [](mesh::Group group) { return Op{.kind = OpKind::ReduceGradients, .group = group}; };
  for (const mesh::Group group : {mesh::Group::Replica, mesh::Group::Tensor, mesh::Group::Expert})
    EXPECT_TRUE(meeting_of(3, over(group)).alone());
  EXPECT_TRUE(meeting_of(3, over(mesh::Group::World)).all());
  EXPECT_TRUE(meeting_of(3, {.kind = OpKind::VocabularyLoss}).all());
  EXPECT_TRUE(meeting_of(3, {.kind = OpKind::ReduceGradients}).alone());
  const Members pair = meeting_of(3, {.kind = OpKind::ReduceGradients, .peer = 1});
  EXPECT_EQ(pair, meeting_of(1, {.kind = OpKind::ReduceGradients, .peer = 3}));
  EXPECT_TRUE(pair.contain(1) && pair.contain(3) && !pair.contain(2));
}

TEST(CheckCollectives, MembersIssueTheSameOnesInTheSameOrder) {
  const std::string both =
      "device 0\n0 0F0\n1 0SEND_F0 to 1 after 0\n2 0RECV_B0 from 1\n3 0B0 after 2\n"
      "4 0REDUCE_GRAD over world bytes 8 after 3\n5 0RELEASE_WEIGHTS over world after 4\n"
      "device 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 after 2\n";
  EXPECT_EQ(
      first_of(both + "4 1REDUCE_GRAD over world bytes 8 after 2\n5 1RELEASE_WEIGHTS over world after 4\n"),
      "legal");
  EXPECT_EQ(
      first_of(both + "4 1RELEASE_WEIGHTS over world after 2\n5 1REDUCE_GRAD over world bytes 8 after 4\n"),
      "unmatched: device 1, position 4: 1RELEASE_WEIGHTS of 0 bytes meets 0REDUCE_GRAD of 8 bytes "
      "(device 0, position 4): both are collective 0 of their members");
  EXPECT_EQ(first_of(both + "4 1REDUCE_GRAD over world bytes 8 after 2\n"),
            "unmatched: device 0, position 5: 0RELEASE_WEIGHTS has no collective on device 1 to meet");
}

// Device 1 has fewer of them, and the B that does not wait is the one finding that there is room for.
TEST(CheckCollectives, UnequalRowsAreNoMeetingsWhenThereIsNoRoomToSayWhy) {
  const Program program =
      parse_program(kOneSlice +
                        "device 0\n0 0F0\n1 0SEND_F0 to 1 after 0\n2 0RECV_B0 from 1\n3 0B0\n"
                        "4 0REDUCE_GRAD over world bytes 8 after 3\n5 0RELEASE_WEIGHTS over world after 4\n"
                        "device 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n2 1B0\n3 1SEND_B0 to 0 after 2\n"
                        "4 1REDUCE_GRAD over world bytes 8 after 2\n",
                    "test");
  const std::vector<Finding> findings = check(program, 1);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().rule, Rule::Order) << findings.front().text;
  EXPECT_EQ(check(program).back().rule, Rule::Unmatched);
}

TEST(CheckCollectives, CirclesThroughACollectiveAreDeadlocks) {
  const std::string text =
      "device 0\n0 0F0\n1 0RELEASE_WEIGHTS over world after 0\n2 0SEND_F0 to 1 after 0,1\n"
      "3 0RECV_B0 from 1\n4 0B0 after 3\n"
      "device 1\n0 1RECV_F0 from 0\n1 1F0 after 0\n2 1RELEASE_WEIGHTS over world after 1\n"
      "3 1B0\n4 1SEND_B0 to 0 after 3\n";
  EXPECT_EQ(first_of(text).substr(0, 9), "deadlock:");
}

TEST(CheckCollectives, GradientsAreReducedOnceWhenTheyAreComplete) {
  EXPECT_EQ(first_after("4 1REDUCE_GRAD over replica after 2\n5 0REDUCE_GRAD over replica after 3\n"),
            "legal");
  EXPECT_EQ(
      first_after("4 1REDUCE_GRAD over replica after 2\n"),
      "missing: 0REDUCE_GRAD over replica is missing: device 0 never runs it, although other gradients are "
      "reduced");
  EXPECT_EQ(
      first_after("4 1REDUCE_GRAD over replica after 2\n5 0REDUCE_GRAD over replica\n"),
      "order: device 0, position 5: 0REDUCE_GRAD may start before 0B0 (device 0, position 3) is done: it "
      "does not wait for it");
  EXPECT_EQ(first_after("4 1REDUCE_GRAD over replica after 2\n5 1REDUCE_GRAD over replica after 2\n"),
            "duplicate: device 0, position 5: 1REDUCE_GRAD runs a second time, also at device 0, position 4");
  EXPECT_EQ(
      first_of("device 0\n0 0F0\n1 1F0\n2 1REDUCE_GRAD over replica after 1\n3 1B0\n4 0B0\n"),
      "order: device 0, position 2: 1REDUCE_GRAD runs before 1B0 (device 0, position 3), whose gradients it "
      "must include");
}

TEST(CheckCollectives, TheStepWaitsForAllOfThem) {
  const std::string reduced = "4 1REDUCE_GRAD over replica after 2\n5 0REDUCE_GRAD over replica after 3\n";
  EXPECT_EQ(first_after(reduced + "6 STEP after 5\n"), "legal");
  EXPECT_EQ(
      first_after(reduced + "6 STEP after 4\n"),
      "order: device 0, position 6: STEP may start before 0REDUCE_GRAD (device 0, position 5) is done: it "
      "does not wait for it");
}

TEST(CheckCollectives, WeightsAreUsedBetweenTheirGatherAndTheirRelease) {
  const auto stage0 = [](const std::string& start, const std::string& release, const std::string& end) {
    return first_of("device 0\n0 0GATHER_WEIGHTS over replica\n1 1GATHER_WEIGHTS over replica\n" + start +
                    "3 1F0 after 1\n4 1B0\n" + release + end);
  };
  EXPECT_EQ(
      stage0("2 0F0 after 0\n", "5 0RELEASE_WEIGHTS over replica after 2\n6 0GATHER_WEIGHTS over replica\n",
             "7 0B0 after 6\n"),
      "legal");
  EXPECT_EQ(
      stage0("2 0F0\n", "", "5 0B0\n"),
      "residence: device 0, position 2: 0F0 may start before 0GATHER_WEIGHTS (device 0, position 0) is done: "
      "it does not wait for it");
  EXPECT_EQ(
      stage0("2 0F0 after 0\n", "5 0RELEASE_WEIGHTS over replica after 2\n", "6 0B0\n"),
      "residence: device 0, position 6: 0B0 uses weights that 0RELEASE_WEIGHTS (device 0, position 5) has "
      "released");
  EXPECT_EQ(stage0("2 0F0 after 0\n", "5 0RELEASE_WEIGHTS over replica\n6 0GATHER_WEIGHTS over replica\n",
                   "7 0B0 after 6\n"),
            "residence: device 0, position 5: 0RELEASE_WEIGHTS may start before 0F0 (device 0, position 2) "
            "is done: "
            "it does not wait for it");
  EXPECT_EQ(first_of("device 0\n0 0F0\n1 1F0\n2 0GATHER_WEIGHTS over replica\n3 1B0\n4 0B0 after 2\n"),
            "residence: device 0, position 0: 0F0 uses weights before a GATHER_WEIGHTS brings them");
}

TEST(CheckCollectives, OnlyCollectivesHaveAGroupAndThenNoPeer) {
  Program program = parse_program(kOneSlice + "device 0\n0 0F0\n1 1F0\n2 1B0\n3 0B0\n", "test");
  program.devices[0].ops[1].group = mesh::Group::Tensor;
  EXPECT_EQ(
      first_finding(program),
      "range: device 0, position 1: 1F0 is over the group tensor, which only a collective without a peer is");
}

TEST(CheckCollectives, PassingWeightsAreThereForTwoStagesAtATime) {
  const std::string head = "penstock program 1\nname test\nstages 3\nslices 1\n";
  const auto first_of = [&](const std::string& text) {
    return first_finding(parse_program(head + text, "test"));
  };
  const std::string two =
      "device 0\n0 0GATHER_WEIGHTS over replica\n1 1GATHER_WEIGHTS over replica\n2 0F0 after 0\n";
  EXPECT_EQ(
      first_of(two + "3 0RELEASE_WEIGHTS over replica after 2\n4 2GATHER_WEIGHTS over replica after 3\n"
                     "5 1F0 after 1\n6 2F0 after 4\n7 2B0\n8 1B0\n"
                     "9 2RELEASE_WEIGHTS over replica after 7\n10 0GATHER_WEIGHTS over replica after 9\n"
                     "11 0B0 after 10\n12 0RELEASE_WEIGHTS over replica after 11\n"
                     "13 1RELEASE_WEIGHTS over replica after 8\n"),
      "legal");
  EXPECT_EQ(
      first_of(two + "3 2GATHER_WEIGHTS over replica\n4 1F0 after 1\n5 2F0 after 3\n6 2B0\n7 1B0\n8 0B0\n"
                     "9 0RELEASE_WEIGHTS over replica after 8\n"),
      "residence: device 0, position 3: 2GATHER_WEIGHTS makes 3 stages gathered at a time; two may be");
  EXPECT_EQ(first_of("device 0\n0 0F0\n1 1F0\n2 2GATHER_WEIGHTS over replica\n3 2F0 after 2\n"
                     "4 2RELEASE_WEIGHTS over replica\n5 2B0\n6 1B0\n7 0B0\n")
                .substr(0, 10),
            "residence:");
}

// Whatever is taken from a legal program of replicas, check finds it.
TEST(CheckCollectives, FindEveryMissingCollectiveAndWait) {
  for (const ReplicaSharding sharding : {ReplicaSharding::Optimizer, ReplicaSharding::Weights}) {
    Lowering options;
    options.replicas = {
        .sharding = sharding, .gradient_bytes = [](int) { return Bytes{8}; }, .weight_bytes = {}};
    const Program program = lower(generate("breadth-first", request(2, 4, 1, 3)), options);
    ASSERT_EQ(first_finding(program), "legal");
    for (int device = 0; device < 2; ++device) {
      const std::vector<Op>& ops = program.devices[device].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].group != mesh::Group::Replica) continue;
        const bool last_release = ops[i].kind == OpKind::ReleaseWeights &&
                                  std::all_of(ops.begin() + i, ops.end(), [](const Op& op) {
                                    return op.kind == OpKind::ReleaseWeights || !is_action(op.kind);
                                  });
        if (last_release) continue;  // only memory, after the last use
        EXPECT_NE(first_finding(without(program, device, i)), "legal")
            << to_text(program) << device << " " << i;
        if (ops[i].after_count == 0) continue;
        Program free = program;
        free.devices[device].ops[i].after_count = 0;
        // Where the op before it on its lane waits for the same.
        const auto waits = program.devices[device].after_of(ops[i]);
        const auto before = std::find_if(ops.rbegin() + (std::ssize(ops) - i), ops.rend(),
                                         [](const Op& op) { return lane_of(op.kind) == Lane::Collective; });
        const bool implied = before != ops.rend() && before->after_count > 0 &&
                             program.devices[device].after_of(*before).back() >= waits.back();
        if (!implied) {
          EXPECT_NE(first_finding(free), "legal") << device << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
