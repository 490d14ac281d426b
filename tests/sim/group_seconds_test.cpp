// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/collectives.h"

#include <gtest/gtest.h>

#include "sim/hardware_files.h"

namespace penstock::sim {
namespace {

using mesh::Group;
using mesh::Mesh;
using mesh::NodeSpread;

TEST(GroupSeconds, AGroupThatStraddlesNodesIsAsSlowAsItsThinnestNode) {
  const Hardware hardware = read_hardware("h800");
  const NodeSpread even = thinnest(Mesh{.tensor = 4, .data = 4, .pipeline = 12}, Group::Replica, 8);
  const NodeSpread straddling = thinnest(Mesh{.tensor = 4, .data = 5, .pipeline = 12}, Group::Replica, 8);
  EXPECT_EQ(even.least_members, 2);
  EXPECT_EQ(straddling.least_members, 1);
  const double ratio = ring_pass(hardware, straddling, 1e10, Payload::Gradients) /
                       ring_pass(hardware, even, 1e10, Payload::Gradients);
  EXPECT_NEAR(ratio, 2 * (4.0 / 5) / (3.0 / 4), 0.01);
}

TEST(GroupSeconds, TwoMembersOnANodeMayReachOneLinkAloneButOnlyInSumsOfGradients) {
  Hardware hardware = read_hardware("a100-vtrain");
  const NodeSpread pair = thinnest(Mesh{.tensor = 4, .data = 4}, Group::Replica, 8);
  const NodeSpread single = thinnest(Mesh{.tensor = 8, .data = 4}, Group::Replica, 8);
  hardware.network.pair_efficiency = 1;
  EXPECT_NEAR(ring_pass(hardware, single, 1e10, Payload::Gradients) /
                  ring_pass(hardware, pair, 1e10, Payload::Gradients),
              2, 1e-3);
  const Seconds activations = ring_pass(hardware, pair, 1e10);
  hardware.network.pair_efficiency = 0.5;
  EXPECT_NEAR(ring_pass(hardware, single, 1e10, Payload::Gradients) /
                  ring_pass(hardware, pair, 1e10, Payload::Gradients),
              1, 1e-3);
  EXPECT_EQ(ring_pass(hardware, pair, 1e10), activations);
}

TEST(GroupSeconds, ATransferStaysInANodeOnlyWhenThePipelineDoes) {
  const Hardware hardware = read_hardware("h800");
  const Seconds inside = stage_transfer(hardware, {.pipeline = 8}, 1e9);
  const Seconds outside = stage_transfer(hardware, {.tensor = 2, .pipeline = 8}, 1e9);
  EXPECT_GT(outside, 5 * inside);
  EXPECT_EQ(stage_transfer(hardware, {.tensor = 8}, 1e9), 0);
}

TEST(GroupSeconds, APairOfPipelineRanksSharesANodeOnlyWhenAllItsRanksDo) {
  const Hardware hardware = read_hardware("h800");
  const Mesh four{.tensor = 4, .pipeline = 4}, three{.context = 3, .pipeline = 3};
  EXPECT_TRUE(in_one_node(hardware, four, 0, 1));
  EXPECT_FALSE(in_one_node(hardware, four, 1, 2));
  EXPECT_FALSE(in_one_node(hardware, four, 0, 3));
  EXPECT_TRUE(in_one_node(hardware, three, 0, 1));
  EXPECT_FALSE(in_one_node(hardware, three, 1, 2)) << "rank 8 is on the second node";
}

TEST(GroupSeconds, ExpertGroupsOfEnginesThatDoNotFoldAreStridedByTheTensorGroup) {
  const NodeSpread strided = strided_expert_group({.tensor = 4, .expert = 4, .data = 4}, 8);
  EXPECT_EQ(strided.nodes, 2);
  EXPECT_EQ(strided.least_members, 2);
  EXPECT_TRUE(thinnest(Mesh{.tensor = 4, .expert = 4, .data = 4}, Group::Expert, 8).one_node);
}

}  // namespace
}  // namespace penstock::sim
