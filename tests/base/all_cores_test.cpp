// SPDX-License-Identifier: Apache-2.0
#include "base/all_cores.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/interruption.h"

namespace penstock {
namespace {

struct Interrupted {};

std::atomic<bool> interrupt;

void ask() {
  if (interrupt) throw Interrupted{};
}

// This thread's question, as a host program sets it.
class Asked {
 public:
  Asked() { interrupt = false, interruption_question = ask; }
  ~Asked() { interruption_question = nullptr; }
};

TEST(AllCores, EachCallIsMadeOnceAndThoseOfAThreadOneAfterTheOther) {
  for (const std::size_t count : {0, 1, 2, 3, 100, 5000}) {
    std::vector<std::atomic<int>> calls(count), busy(core_count());
    on_all_cores(count, [&](std::size_t i, std::size_t thread) {
      EXPECT_EQ(busy.at(thread)++, 0);
      ++calls[i];
      --busy[thread];
    });
    for (const auto& made : calls) EXPECT_EQ(made, 1);
  }
}

TEST(AllCores, TheFirstExceptionOfAnyThreadEndsTheLoop) {
  std::atomic<std::size_t> calls = 0;
  EXPECT_THROW(on_all_cores(1'000'000,
                            [&](std::size_t i, std::size_t) {
                              ++calls;
                              if (i == 10) throw std::runtime_error("ten");
                            }),
               std::runtime_error);
  EXPECT_LT(calls, 1'000'000);
}

// Threads may end before the last of them has begun.
TEST(AllCores, ShortLoopsEndAndGiveTheirException) {
  for (int loop = 0; loop < 500; ++loop) {
    EXPECT_THROW(on_all_cores(core_count(),
                              [](std::size_t i, std::size_t) {
                                if (i == 0) throw std::runtime_error("the first");
                              }),
                 std::runtime_error);
  }
}

// Whichever thread has the endless call, the one that is asked works or waits; both end.
TEST(AllCores, AnInterruptionEndsCallsOfAllThreads) {
  for (const std::size_t endless : {0, 1, 2, 3}) {
    const Asked asked;
    std::atomic<bool> began = false;
    std::thread person([&] {
      while (!began) std::this_thread::yield();
      interrupt = true;
    });
    EXPECT_THROW(on_all_cores(4,
                              [&](std::size_t i, std::size_t) {
                                if (i != endless) return;
                                for (began = true;;) allow_interruption();
                              }),
                 Interrupted);
    person.join();
  }
}

TEST(AllCores, TheCallersQuestionIsAskedWhileItWaits) {
  if (core_count() < 2) GTEST_SKIP() << "one core: the caller never waits";
  const Asked asked;
  std::atomic<bool> other_runs = false;
  EXPECT_THROW(on_all_cores(2,
                            [&](std::size_t, std::size_t thread) {
                              if (thread == 0) {  // leaves the caller with nothing but waiting
                                while (!other_runs) std::this_thread::yield();
                                interrupt = true;
                                return;
                              }
                              for (other_runs = true;;) allow_interruption();
                            }),
               Interrupted);
}

}  // namespace
}  // namespace penstock
