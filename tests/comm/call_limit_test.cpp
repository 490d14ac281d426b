// SPDX-License-Identifier: Apache-2.0
#include "comm/ending/call_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <iostream>

namespace penstock::comm {
namespace {

void tell(const RunError& failure) { std::cerr << failure.what() << "\n"; }

TEST(CallLimit, EndsTheProcessOfACallThatDoesNotReturn) {
  EXPECT_EXIT(
      {
        const CallLimit limit("the start of MPI", 0.05, tell);
        ::sleep(60);
      },
      testing::ExitedWithCode(3),
      "the start of MPI has taken 50.* ms: the process of another rank is stopped");
}

TEST(CallLimit, LetsACallThatReturnsGoOn) {
  for (const Seconds seconds : {0.0, 60.0, 1e10}) {
    const CallLimit limit("a call", seconds, [](const RunError& failure) { FAIL() << failure.what(); });
  }
}

}  // namespace
}  // namespace penstock::comm
