// SPDX-License-Identifier: Apache-2.0
#include "base/start_thread.h"

#include <gtest/gtest.h>

#include <thread>

#include "failure.h"

namespace penstock {
namespace {

TEST(StartThread, SaysWhatARefusedThreadWasFor) {
  const auto refuse = []() -> int {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  EXPECT_EQ(failure<RunError>([&] { start_thread("copies", refuse); }),
            "no thread for copies: Resource temporarily unavailable; allow more processes (ulimit -u, a "
            "container's limit) or memory, or start fewer ranks");
}

TEST(StartThread, GivesTheThread) {
  int done = 0;
  start_thread("a test", [&] { return std::thread([&] { done = 1; }); }).join();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace penstock
