// SPDX-License-Identifier: Apache-2.0
// Copies of states that are brought from hosts without work.
#include "train/checkpoint/host_copies.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "comm/threads.h"
#include "failure.h"
#include "scratch.h"
#include "train/copied_run.h"
#include "write_path.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

// Rank 2, on another host, has no work in the run that goes on.
std::vector<std::string> bring_from_the_third_rank(const Scratch& memory, Seconds timeout = 120) {
  std::vector<std::string> failures;  // of the one rank that receives
  comm::run_ranks(3, [&](comm::Communicator& world) {
    world.set_timeout(timeout);
    const bool leaves = world.rank() == 2;
    const auto here = train::bring_copies(memory / (leaves ? "b" : "a"), kNumber, leaves ? "b" : "a", 2,
                                          comm::World(world));
    if (!here.empty()) failures = here;
    world.barrier();
  });
  return failures;
}

TEST(HostCopies, AreBroughtFromAHostThatHasNoWork) {
  const Scratch memory;
  const run::Run run = sharded_plan(2, 1, 1, "off");
  const auto states = copied_steps(run, memory / "b", 1, 2);
  memory.write("b/torn", "no copy");
  bring_from_the_third_rank(memory);
  EXPECT_EQ(files_in(memory / "a").size(), files_in(memory / "b").size() - 1);
  const auto found = found_in(memory / "a");
  ASSERT_TRUE(found);
  expect_same(loaded_from(*found, run), states.back());
}

class SlowMemory final : public FaultyFiles {
 public:
  ssize_t write(int descriptor, std::span<const std::byte> bytes) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return FaultyFiles::write(descriptor, bytes);
  }
};

class FullMemory final : public FaultyFiles {
 public:
  ssize_t write(int, std::span<const std::byte>) override {
    errno = ENOSPC;
    return -1;
  }
};

TEST(HostCopies, ThatFindNoRoomAreLeftOut) {
  const Scratch memory;
  copied_steps(sharded_plan(2, 1, 1, "off"), memory / "b", 1, 2);
  const FullMemory full;
  const std::vector<std::string> failures = bring_from_the_third_rank(memory);
  EXPECT_EQ(failures.size(), files_in(memory / "b").size());
  ASSERT_FALSE(failures.empty());
  EXPECT_NE(failures.front().find("cannot be written"), std::string::npos) << failures.front();
  EXPECT_TRUE(files_in(memory / "a").empty());
}

// Rank 1 neither sends nor receives any.
TEST(HostCopies, AreBroughtHoweverLongThatTakes) {
  const Scratch memory;
  copied_steps(sharded_plan(2, 1, 1, "off"), memory / "b", 1, 2);
  const SlowMemory slow;
  bring_from_the_third_rank(memory, 1);
  EXPECT_EQ(files_in(memory / "a").size(), 4) << "each of which takes a third of the time for a wait";
}

TEST(HostCopies, ThatWouldBeBroughtAreFoundAndLeftWhereTheyAre) {
  const Scratch memory;
  const auto found = [&](const std::string& number = kNumber) {
    std::atomic<int> ranks = 0;
    comm::run_ranks(3, [&](comm::Communicator& world) {
      const bool leaves = world.rank() == 2;
      ranks += train::has_copies_to_bring(memory / (leaves ? "b" : "a"), number, leaves ? "b" : "a", 2,
                                          comm::World(world));
    });
    return ranks.load();
  };
  EXPECT_EQ(found(), 0);
  copied_steps(sharded_plan(2, 1, 1, "off"), memory / "b", 1, 1);
  const auto before = files_below(memory.path());
  EXPECT_EQ(found(), 3) << "all ranks know";
  EXPECT_EQ(found("00000000000000ce"), 0) << "they are another run's";
  EXPECT_EQ(files_below(memory.path()), before);
  fs::rename(memory / "b", memory / "a");
  EXPECT_EQ(found(), 0) << "they are where the run will be";
}

TEST(HostCopies, AreBroughtWholeOrNotAtAllWhicheverCallFails) {
  const Scratch source;
  copied_steps(sharded_plan(1, 1, 1, "off"), source / "b", 1, 2);
  const auto memory_with_copies = [&](const Scratch& memory) {
    fs::copy(source / "b", memory / "b", fs::copy_options::recursive);
  };
  int calls = 0;
  {
    const Scratch memory;
    memory_with_copies(memory);
    const FaultyFiles counting;
    bring_from_the_third_rank(memory);
    calls = counting.calls();
  }
  ASSERT_GT(calls, 0);
  for (const InjectedFault& fault : kInjectedFaults) {
    int failures = 0;
    for (int at = 0; at < calls; ++at) {
      SCOPED_TRACE(std::string(fault.text) + " at call " + std::to_string(at));
      const Scratch memory;
      memory_with_copies(memory);
      std::string failed;
      {
        const FaultyFiles faulty(at, fault.error, fault.fault);
        std::vector<std::string> left_out;
        failed = failure<RunError>([&] { left_out = bring_from_the_third_rank(memory); });
        if (!left_out.empty()) failed = left_out.front();
      }
      if (!failed.empty()) {
        ++failures;
        EXPECT_NE(failed.find(memory / "a"), std::string::npos) << failed;
        bring_from_the_third_rank(memory);
      }
      EXPECT_TRUE(found_in(memory / "a"));
    }
    EXPECT_GT(failures, 0) << fault.text;
  }
}

}  // namespace
}  // namespace penstock::testing
