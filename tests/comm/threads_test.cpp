// SPDX-License-Identifier: Apache-2.0
// What happens to the other threads when a rank fails.
#include "comm/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "comm/single.h"
#include "failure.h"
#include "processes.h"

namespace penstock::comm {
namespace {

// What each rank reports when `culprit` throws while the others do what `others` says.
template <class Error>
std::map<int, std::string> reports_of(int ranks, int culprit, const Error& error,
                                      const std::function<void(Communicator&)>& others) {
  std::map<int, std::string> lines;
  const auto body = [&](Communicator& group) { group.rank() == culprit ? throw error : others(group); };
  const auto report = [&](int rank, const std::exception& failure) { lines[rank] = failure.what(); };
  EXPECT_THROW(run_ranks(ranks, body, report), Error);
  return lines;
}

TEST(RunRanks, RunsTheBodyOnceOnEachRank) {
  for (int ranks : {1, 2, 7}) {
    std::vector<std::atomic<int>> calls(ranks);
    run_ranks(ranks, [&](Communicator& group) {
      EXPECT_EQ(group.size(), ranks);
      ++calls[group.rank()];
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(RunRanks, TellsRanksThatWaitForAMessageWhoFailedAndWhy) {
  const auto wait = [](Communicator& group) {
    std::byte byte;
    group.receive({&byte, 1}, 1, 0).wait();
  };
  const auto lines = reports_of(3, 1, InputError("no such file"), wait);
  EXPECT_EQ(lines, (std::map<int, std::string>{{0, "rank 1 failed: no such file"},
                                               {1, "no such file"},
                                               {2, "rank 1 failed: no such file"}}));
}

TEST(RunRanks, EndsRanksInsideACollectiveOfASubGroup) {
  for (int ranks : {2, 3, 5}) {
    const auto lines =
        reports_of(ranks, 0, RunError("disk full"), [](Communicator& group) { group.barrier(); });
    EXPECT_EQ(lines.size(), ranks);
    for (const auto& [rank, line] : lines)
      EXPECT_EQ(line, rank == 0 ? "disk full" : "rank 0 failed: disk full");
  }
}

TEST(RunRanks, EndsRanksThatOnlyTest) {
  const auto poll = [](Communicator& group) {
    std::byte byte;
    Request receive = group.receive({&byte, 1}, 0, 0);
    while (!receive.test()) std::this_thread::yield();
  };
  EXPECT_EQ(reports_of(2, 0, RunError("why"), poll).at(1), "rank 0 failed: why");
}

TEST(RunRanks, TellsABusyRankAtItsNextCall) {
  std::atomic<bool> failed = false;
  const auto body = [&](Communicator& group) {
    if (group.rank() == 0) {
      group.abort("first");
      group.abort("second");
      failed = true;
      return;
    }
    while (!failed) std::this_thread::yield();
    std::byte byte{};
    EXPECT_EQ(failure<PeerFailure>([&] { group.send({&byte, 1}, 0, 0); }), "rank 0 failed: first");
    EXPECT_EQ(failure<PeerFailure>([&] { group.receive({&byte, 1}, 0, 0); }), "rank 0 failed: first");
    EXPECT_EQ(failure<PeerFailure>([&] { group.barrier(); }), "rank 0 failed: first");
  };
  EXPECT_EQ(failure<PeerFailure>([&] { run_ranks(3, body); }), "rank 0 failed: first");
}

TEST(RunRanks, AbortInASubGroupNamesTheWorldsRank) {
  const auto body = [](Communicator& world) {
    const auto reversed = world.split(0, -world.rank());
    if (world.rank() == 2) reversed->abort("no more");
    world.barrier();
  };
  EXPECT_EQ(failure<PeerFailure>([&] { run_ranks(3, body); }), "rank 2 failed: no more");
}

TEST(RunRanks, ReportsThingsThatAreNoExceptions) {
  std::string line;
  const auto report = [&](int, const std::exception& failure) { line = failure.what(); };
  EXPECT_THROW(run_ranks(
                   1, [](Communicator&) { throw 7; }, report),
               int);
  EXPECT_EQ(line, "an exception that is not a std::exception");
}

TEST(RunRanks, NamesTheMessageThatARankWaitedForInVain) {
  const auto body = [](Communicator& group) {
    group.set_timeout(0.05);
    std::byte byte{};
    if (group.rank() == 0) group.send({&byte, 1}, 1, 4).wait();
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  EXPECT_EQ(failure<RunError>([&] { run_ranks(2, body); }),
            "waited 50.0 ms for the message to rank 1 on channel 4 (1 B) without progress; is rank 1 stuck?");
}

TEST(RunRanks, ATimeoutInACollectiveNamesTheMissingRank) {
  const auto body = [](Communicator& group) {
    group.set_timeout(0.05);
    if (group.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    } else {
      group.barrier();
    }
  };
  const std::string told = failure<RunError>([&] { run_ranks(4, body); });
  EXPECT_NE(told.find("from rank 2 in a collective"), std::string::npos) << told;
}

// Run under the address sanitizer this also shows that nobody copies into the buffers that are gone.
TEST(RunRanks, RequestsMayBeDestroyedUnfinishedAfterAnAbort) {
  const auto body = [](Communicator& group) {
    std::vector<std::byte> text(1000);
    std::vector<Request> requests;
    for (int peer = 0; peer < group.size(); ++peer) {
      requests.push_back(group.receive(text, peer, 1));
      requests.push_back(group.send(text, peer, 2));
    }
    if (group.rank() == 0) throw RunError("in the middle");
    wait_all(requests);
  };
  for (int round = 0; round < 50; ++round) EXPECT_THROW(run_ranks(4, body), RunError);
}

// Those that have begun do not wait for it.
TEST(RunRanks, ARankThatCannotBeStartedEndsTheOthers) {
  if (kSlowness > 1) GTEST_SKIP() << "a sanitizer's own memory counts too; without one it is tested";
  // Room for the stacks of four ranks, and enough beside them that no other allocation fails.
  const auto in_little_memory = [] {
    constexpr std::size_t kStack = std::size_t{1} << 30;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    pthread_setattr_default_np(&attributes);
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    const rlim_t room = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + 4 * kStack + kStack / 2;
    const rlimit limit{room, room};
    setrlimit(RLIMIT_AS, &limit);
    const std::string told =
        failure<RunError>([] { run_ranks(1000, [](Communicator& world) { world.barrier(); }); });
    _exit(told.find(" of 1000 cannot be started as a thread") != std::string::npos ? 0 : 1);
  };
  EXPECT_EXIT(in_little_memory(), ::testing::ExitedWithCode(0), "");
}

TEST(SingleRank, WaitingForOneselfIsToldAtOnce) {
  const auto alone = make_single();
  std::byte byte;
  Request receive = alone->receive({&byte, 1}, 0, 9);
  EXPECT_EQ(failure<RunError>([&] { receive.wait(); }),
            "the message from rank 0 on channel 9 (1 B) can never arrive: this rank waits for itself");
}

TEST(SingleRank, HearsOfItsOwnAbort) {
  const auto alone = make_single();
  alone->abort("tired");
  EXPECT_EQ(failure<PeerFailure>([&] {
              alone->barrier();
              alone->send({}, 0, 0);
            }),
            "rank 0 failed: tired");
}

}  // namespace
}  // namespace penstock::comm
