// SPDX-License-Identifier: Apache-2.0
#include "report/layout.h"

#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/text.h"

namespace penstock::report {
namespace {

using schedule::generate;
using schedule::parse_csv;
using schedule::request;
using schedule::Schedule;

std::vector<std::int64_t> starts(const Layout& layout, int device) {
  std::vector<std::int64_t> times;
  for (const Cell& cell : layout.devices[device]) times.push_back(cell.start);
  return times;
}

TEST(Layout, ActionsRunAsEarlyAsTheirDeviceAndDependenciesAllow) {
  const Layout layout = lay_out(parse_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "test"));
  EXPECT_TRUE(layout.in_time);
  EXPECT_EQ(starts(layout, 0), (std::vector<std::int64_t>{0, 1, 4, 7}));
  EXPECT_EQ(starts(layout, 1), (std::vector<std::int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(layout.end, 9);
}

TEST(Layout, IdleCellsTakeNoTime) {
  const Layout spread = lay_out(parse_csv("0F0,,,,0B0\n,1F0,1B0\n", "test"));
  EXPECT_EQ(starts(spread, 0), starts(lay_out(parse_csv("0F0,0B0\n1F0,1B0\n", "test")), 0));
  EXPECT_EQ(spread.devices[0][1].position, 4);
}

TEST(Layout, AnOverlappedPairWaitsForBothAndRunsOneAfterTheOther) {
  const Layout layout = lay_out(parse_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "test"));
  EXPECT_EQ(starts(layout, 0), (std::vector<std::int64_t>{0, 4, 5, 8}));
}

TEST(Layout, MakespansAreThoseOfTheFormulas) {
  for (const int p : {1, 2, 4, 8}) {
    for (const int m : {1, 4, 16}) {
      EXPECT_EQ(lay_out(generate("1f1b", request(p, m))).end, 3 * (m + p - 1));
      EXPECT_EQ(lay_out(generate("gpipe", request(p, m)), {.forward = 3, .backward = 5}).end,
                8 * (m + p - 1));
      EXPECT_EQ(lay_out(generate("slimpipe", request(p, m, 4))).end, 3 * (4 * m + p - 1));
    }
  }
}

TEST(Layout, WhatCannotRunIsLaidOutByPosition) {
  for (const char* csv : {"0B0,,0F0\n", "0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"}) {
    const Schedule schedule = parse_csv(csv, "test");
    const Layout layout = lay_out(schedule);
    EXPECT_FALSE(layout.in_time);
    EXPECT_EQ(layout.end, std::ssize(schedule.devices[0]));
    for (const Cell& cell : layout.devices[0]) EXPECT_EQ(cell.start, cell.position);
  }
}

TEST(Layout, AnIncompleteScheduleIsLaidOutInTimeAllTheSame) {
  const Layout layout = lay_out(parse_csv("0F0,0F1,0B1\n1B0,1F1,1B1\n", "test"));
  EXPECT_TRUE(layout.in_time);
  EXPECT_EQ(starts(layout, 1), (std::vector<std::int64_t>{0, 2, 3}));
}

}  // namespace
}  // namespace penstock::report
