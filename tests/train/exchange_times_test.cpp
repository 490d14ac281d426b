// SPDX-License-Identifier: Apache-2.0
#include "train/exchange/exchange_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace penstock::train {
namespace {

// Moments one after the other.
std::vector<backend::Moment> moments(int count) {
  std::vector<backend::Moment> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(backend::moment_now());
    std::this_thread::sleep_for(std::chrono::microseconds(1));
  }
  return made;
}

void expect_span(const schedule::ExchangeSpan& span, std::uint32_t exchange, bool waiting, Seconds start,
                 Seconds end) {
  EXPECT_EQ(span.exchange, exchange);
  EXPECT_EQ(span.waiting, waiting);
  EXPECT_EQ(span.start, start);
  EXPECT_EQ(span.end, end);
}

class ExchangeTimesTest : public ::testing::Test {
 protected:
  ExchangeTimesTest() {
    clock_.restart();
    moments_ = moments(10);
  }
  Seconds at(int i) const { return clock_.seconds(moments_[static_cast<std::size_t>(i)]); }
  void wait(std::uint32_t exchange, int start, int end) {
    times_.waited(exchange, moments_[static_cast<std::size_t>(start)],
                  moments_[static_cast<std::size_t>(end)]);
  }
  void serve(std::uint32_t exchange, int start, int end) {
    times_.served(exchange, moments_[static_cast<std::size_t>(start)],
                  moments_[static_cast<std::size_t>(end)], 0.5);
  }

  backend::DeviceClock clock_;
  std::vector<backend::Moment> moments_;
  ExchangeTimes times_;
};

TEST_F(ExchangeTimesTest, NoWaitIsCountedWhileSomethingIsServed) {
  serve(7, 0, 1);
  wait(3, 2, 9);
  serve(8, 3, 4);
  serve(9, 6, 7);
  const auto spans = times_.spans(clock_);
  ASSERT_EQ(spans.size(), 6U);
  expect_span(spans[0], 7, false, at(0), at(1));
  expect_span(spans[1], 3, true, at(2), at(3));
  expect_span(spans[2], 8, false, at(3), at(4));
  expect_span(spans[3], 3, true, at(4), at(6));
  expect_span(spans[4], 9, false, at(6), at(7));
  expect_span(spans[5], 3, true, at(7), at(9));
  EXPECT_EQ(spans[0].processor, 0.5);
  EXPECT_EQ(spans[1].processor, 0);
}

// On a GPU a stream of its own serves, so that what is served may begin before a wait and end behind it.
TEST_F(ExchangeTimesTest, WhatIsServedMayOverlapTheEndsOfWaits) {
  serve(7, 0, 3);
  wait(1, 1, 2);
  wait(2, 2, 5);
  serve(8, 4, 8);
  wait(3, 6, 9);
  const auto spans = times_.spans(clock_);
  ASSERT_EQ(spans.size(), 4U);
  expect_span(spans[0], 7, false, at(0), at(3));
  expect_span(spans[1], 2, true, at(3), at(4));
  expect_span(spans[2], 8, false, at(4), at(8));
  expect_span(spans[3], 3, true, at(8), at(9));
  times_.clear();
  EXPECT_TRUE(times_.spans(clock_).empty());
}

}  // namespace
}  // namespace penstock::train
