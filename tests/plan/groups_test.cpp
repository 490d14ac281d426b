// SPDX-License-Identifier: Apache-2.0
#include "plan/groups.h"

#include <gtest/gtest.h>

#include <map>

#include "reference.h"

namespace penstock::plan {
namespace {

// Counts members node by node.
Placement counted(std::int64_t first, std::int64_t stride, int members, std::int64_t g) {
  std::map<std::int64_t, int> nodes;
  for (int i = 0; i < members; ++i) ++nodes[(first + i * stride) / g];
  Placement result{members, nodes.size() == 1, static_cast<int>(nodes.size()), members};
  for (const auto& [node, count] : nodes) result.least_members = std::min(result.least_members, count);
  return result;
}

TEST(Groups, AreWhereCountingFindsThem) {
  for (const std::int64_t stride : {1, 2, 4, 8, 16}) {
    for (std::int64_t first = 0; first < 16; ++first) {
      for (int members = 1; members <= 20; ++members) {
        const Placement expected = counted(first, stride, members, 8);
        const Placement found = place(first, stride, members, 8);
        EXPECT_EQ(found.one_node, expected.one_node);
        EXPECT_EQ(found.nodes, expected.nodes) << first << " " << stride << " " << members;
        EXPECT_EQ(found.least_members, expected.least_members) << first << " " << stride << " " << members;
      }
    }
  }
}

TEST(Groups, AGroupThatStraddlesNodesIsAsSlowAsItsThinnestNode) {
  const Hardware hardware = read_hardware("h800");
  const Placement even = gradient_group({.tensor = 4, .data = 4, .pipeline = 12}, 8);
  const Placement straddling = gradient_group({.tensor = 4, .data = 5, .pipeline = 12}, 8);
  EXPECT_EQ(even.least_members, 2);
  EXPECT_EQ(straddling.least_members, 1);
  const double ratio = ring_pass(hardware, straddling, 1e10, true) / ring_pass(hardware, even, 1e10, true);
  EXPECT_NEAR(ratio, 2 * (4.0 / 5) / (3.0 / 4), 0.01);
}

TEST(Groups, TwoMembersOnANodeMayReachOneLinkAloneButOnlyInSumsOfGradients) {
  Hardware hardware = read_hardware("a100-vtrain");
  const Placement pair = gradient_group({.tensor = 4, .data = 4}, 8);
  const Placement single = gradient_group({.tensor = 8, .data = 4}, 8);
  hardware.network.pair_efficiency = 1;
  EXPECT_NEAR(ring_pass(hardware, single, 1e10, true) / ring_pass(hardware, pair, 1e10, true), 2, 1e-3);
  const Seconds activations = ring_pass(hardware, pair, 1e10);
  hardware.network.pair_efficiency = 0.5;
  EXPECT_NEAR(ring_pass(hardware, single, 1e10, true) / ring_pass(hardware, pair, 1e10, true), 1, 1e-3);
  EXPECT_EQ(ring_pass(hardware, pair, 1e10), activations);
}

TEST(Groups, ATransferStaysInANodeOnlyWhenThePipelineDoes) {
  const Hardware hardware = read_hardware("h800");
  const Seconds inside = stage_transfer(hardware, {.pipeline = 8}, 1e9);
  const Seconds outside = stage_transfer(hardware, {.tensor = 2, .pipeline = 8}, 1e9);
  EXPECT_GT(outside, 5 * inside);
  EXPECT_EQ(stage_transfer(hardware, {.tensor = 8}, 1e9), 0);
}

}  // namespace
}  // namespace penstock::plan
