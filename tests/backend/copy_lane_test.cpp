// SPDX-License-Identifier: Apache-2.0
#include "backend/copy_lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

namespace penstock::backend {
namespace {

TEST(CopyLane, RunsJobsInOrderAndTellsWhen) {
  DeviceClock clock;
  clock.restart();
  CopyLane lane;
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(lane.post([&, i] { seen.push_back(i); }), i);
  Seconds previous = 0;
  for (int i = 0; i < 100; ++i) {
    const CopyLane::Times times = lane.wait(i);
    EXPECT_LE(previous, clock.seconds(times.start));
    EXPECT_LE(clock.seconds(times.start), clock.seconds(times.end));
    previous = clock.seconds(times.end);
    EXPECT_GE(seen.size(), static_cast<std::size_t>(i) + 1);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
}

TEST(CopyLane, WorksBesideTheThreadThatPosts) {
  CopyLane lane;
  std::promise<void> gate;
  lane.post([opened = gate.get_future().share()] { opened.wait(); });
  gate.set_value();  // would never be reached if post() waited
  lane.wait(0);
}

TEST(CopyLane, StopsAtTheFirstFailureAndTellsItToEveryLaterWait) {
  CopyLane lane;
  std::atomic<bool> ran_after = false;
  lane.post([] {});
  lane.post([] { throw std::runtime_error("disk"); });
  lane.post([&] { ran_after = true; });
  lane.wait(0);
  EXPECT_THROW(lane.wait(1), std::runtime_error);
  EXPECT_THROW(lane.wait(1), std::runtime_error);
  EXPECT_THROW(lane.throw_failure(), std::runtime_error);
  EXPECT_FALSE(ran_after);
}

TEST(CopyLane, EndsWithJobsThatHaveNotBegun) {
  std::promise<void> gate;
  auto lane = std::make_unique<CopyLane>();
  lane->post([opened = gate.get_future().share()] { opened.wait(); });
  for (int i = 0; i < 10; ++i) lane->post([] {});
  gate.set_value();
  lane.reset();
}

}  // namespace
}  // namespace penstock::backend
