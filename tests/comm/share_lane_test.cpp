// SPDX-License-Identifier: Apache-2.0
// Sums and gathers in pieces, compared with a plain loop over whole buffers; and how they fail.
#include "comm/share_lane.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "base/random.h"
#include "comm/threads.h"
#include "failure.h"

namespace penstock::comm {
namespace {

using Shares = std::vector<SharedBuffer::Share>;

template <class T>
constexpr Type kType = sizeof(T) == 8 ? Type::F64 : Type::F32;

// So many elements, in shares that differ by at most one element.
Shares even_shares(std::int64_t elements, int ranks) {
  Shares shares;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t begin = elements * rank / ranks;
    shares.push_back({begin, elements * (rank + 1) / ranks - begin});
  }
  return shares;
}

// All but one of the shares are empty.
Shares one_share(std::int64_t elements, int ranks, int owner) {
  Shares shares(static_cast<std::size_t>(ranks));
  shares[static_cast<std::size_t>(owner)] = {0, elements};
  return shares;
}

std::int64_t elements_of(const Shares& shares) {
  std::int64_t elements = 0;
  for (const auto& share : shares) elements += share.count;
  return elements;
}

// Numbers of many magnitudes, whose sum depends on its order.
template <class T>
std::vector<T> numbers(int rank, std::int64_t elements, std::uint64_t buffer) {
  std::vector<T> values;
  const std::uint64_t key = stream_key(static_cast<std::uint64_t>(rank), buffer);
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(i));
    values.push_back(
        static_cast<T>(normal(key, static_cast<std::uint64_t>(i)) * static_cast<double>(1 << bits % 20)));
  }
  return values;
}

// Neighbours are added until one value is left.
template <class T>
T tree_sum(std::vector<T> values) {
  while (values.size() > 1) {
    std::vector<T> sums;
    for (std::size_t i = 0; i < values.size(); i += 2)
      sums.push_back(i + 1 < values.size() ? values[i] + values[i + 1] : values[i]);
    values = std::move(sums);
  }
  return values.front();
}

// A lane over all ranks, with the room that it asks for.
template <class T>
struct Lane {
  Lane(Communicator& ranks, const ShareLane::Limits& limits, std::int64_t longest, Seconds timeout = 60,
       ShareLane::Watch watch = {})
      : group(ranks),
        room(static_cast<std::size_t>(ShareLane::room_for(limits, ranks.size(), longest))),
        lane(kType<T>, std::as_writable_bytes(std::span(room)), limits, 3, timeout, std::move(watch)) {}

  Communicator& group;
  std::vector<T> room;
  ShareLane lane;
};

template <class T>
SharedBuffer shared(std::vector<T>& values, const Shares& shares) {
  return {.elements = std::as_writable_bytes(std::span(values)).data(), .shares = shares};
}

// Every kind of size next to each other: none, fewer than ranks, no multiple of anything, several pieces.
std::vector<Shares> various_shares(int ranks) {
  std::vector<Shares> shares;
  for (const std::int64_t elements : {0, 1, 3, 5, 16, 97, 331})
    shares.push_back(even_shares(elements, ranks));
  shares.push_back(one_share(41, ranks, ranks - 1));
  return shares;
}

template <class T>
void expect_own_share_summed(const std::vector<T>& values, const Shares& shares, const Communicator& ranks,
                             std::uint64_t buffer) {
  std::vector<std::vector<T>> all;
  for (int rank = 0; rank < ranks.size(); ++rank)
    all.push_back(numbers<T>(rank, elements_of(shares), buffer));
  const auto& own = shares[static_cast<std::size_t>(ranks.rank())];
  for (std::int64_t i = own.begin; i < own.begin + own.count; ++i) {
    std::vector<T> addends;
    for (const auto& theirs : all) addends.push_back(theirs[static_cast<std::size_t>(i)]);
    EXPECT_EQ(values[static_cast<std::size_t>(i)], tree_sum(addends))
        << "element " << i << " on rank " << ranks.rank() << " of " << ranks.size();
  }
}

// Each buffer in an operation of its own and all in one, queued before any is waited for.
template <class T>
void sums_are_trees(Communicator& ranks, const ShareLane::Limits& limits) {
  Lane<T> lane(ranks, limits, 331);
  const std::vector<Shares> shares = various_shares(ranks.size());
  std::vector<std::vector<T>> values;
  for (std::uint64_t i = 0; i < 2 * shares.size(); ++i)
    values.push_back(numbers<T>(ranks.rank(), elements_of(shares[i % shares.size()]), i));
  std::vector<SharedBuffer> together;
  std::vector<ShareLane::Ticket> tickets;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    tickets.push_back(lane.lane.sum(lane.group, {shared(values[i], shares[i])}, "a sum"));
    together.push_back(shared(values[shares.size() + i], shares[i]));
  }
  tickets.push_back(lane.lane.sum(lane.group, together, "all sums"));
  for (const ShareLane::Ticket ticket : tickets) {
    lane.lane.wait(ticket, {});
    EXPECT_TRUE(lane.lane.done(ticket));
  }
  EXPECT_TRUE(lane.lane.idle());
  for (std::size_t i = 0; i < values.size(); ++i)
    expect_own_share_summed(values[i], shares[i % shares.size()], ranks, i);
}

// The limits: pieces of one element, smaller than shares, larger than all of them; one at a time and several.
const std::vector<ShareLane::Limits> kLimits{{1, 1}, {1, 4}, {7, 1}, {7, 3}, {1 << 17, 4}};

TEST(ShareLane, SumsAreAlignedTreesOverTheRanks) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const auto& limits : kLimits) {
      run_ranks(ranks, [&](Communicator& group) { sums_are_trees<float>(group, limits); });
      run_ranks(ranks, [&](Communicator& group) { sums_are_trees<double>(group, limits); });
    }
  }
}

// Elements of 2 bytes, as weights have, in a lane whose sums have others.
TEST(ShareLane, GathersGiveEachShareFromItsRank) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const auto& limits : kLimits) {
      run_ranks(ranks, [&](Communicator& group) {
        Lane<float> lane(group, limits, 331);
        for (const Shares& shares : various_shares(ranks)) {
          std::vector<std::uint16_t> values(static_cast<std::size_t>(elements_of(shares)));
          std::vector<std::uint16_t> wanted(values.size());
          for (int rank = 0; rank < ranks; ++rank) {
            const auto& share = shares[static_cast<std::size_t>(rank)];
            for (std::int64_t i = share.begin; i < share.begin + share.count; ++i) {
              const auto number = static_cast<std::uint16_t>(100 * i + rank);
              wanted[static_cast<std::size_t>(i)] = number;
              if (rank == group.rank()) values[static_cast<std::size_t>(i)] = number;
            }
          }
          lane.lane.wait(lane.lane.gather(lane.group, {shared(values, shares)}, 2, "a gather"), {});
          EXPECT_EQ(values, wanted);
        }
      });
    }
  }
}

// A gather of what was summed before it in the queue, as between copies of a shard.
TEST(ShareLane, OperationsOfAQueueFollowEachOther) {
  run_ranks(5, [](Communicator& group) {
    Lane<double> lane(group, {3, 2}, 100);
    const Shares shares = even_shares(97, 5);
    std::vector<double> values = numbers<double>(group.rank(), 97, 0);
    lane.lane.sum(lane.group, {shared(values, shares)}, "a sum");
    const auto last = lane.lane.gather(lane.group, {shared(values, shares)}, sizeof(double), "a gather");
    lane.lane.wait(last, {});
    expect_own_share_summed(values, {5, {0, 97}}, group, 0);
  });
}

TEST(ShareLane, TellsWhenEachOperationBeginsAndEnds) {
  run_ranks(2, [](Communicator& group) {
    std::vector<std::pair<ShareLane::Ticket, bool>> told;  // and whether it ended
    Lane<float> lane(group, {4, 2}, 100, 60,
                     {.began = [&](ShareLane::Ticket one) { told.emplace_back(one, false); },
                      .ended = [&](ShareLane::Ticket one) { told.emplace_back(one, true); }});
    std::vector<float> values = numbers<float>(group.rank(), 50, 0);
    lane.lane.sum(lane.group, {shared(values, even_shares(50, 2))}, "a sum");
    lane.lane.wait(lane.lane.gather(lane.group, {shared(values, even_shares(50, 2))}, 4, "a gather"), {});
    const decltype(told) wanted{{0, false}, {0, true}, {1, false}, {1, true}};
    EXPECT_EQ(told, wanted);
  });
}

// Who computes calls advance now and then; nobody waits.
TEST(ShareLane, AdvancesWithoutWaiting) {
  run_ranks(3, [](Communicator& group) {
    Lane<float> lane(group, {4, 2}, 100);
    std::vector<float> values = numbers<float>(group.rank(), 50, 0);
    const auto ticket = lane.lane.sum(lane.group, {shared(values, even_shares(50, 3))}, "a sum");
    while (!lane.lane.done(ticket)) {
      lane.lane.advance();
      std::this_thread::yield();
    }
    expect_own_share_summed(values, even_shares(50, 3), group, 0);
  });
}

// One rank comes late, and the others do something else until then.
TEST(ShareLane, WaitingRanksServeOthers) {
  run_ranks(2, [](Communicator& group) {
    Lane<float> lane(group, {4, 2}, 100);
    std::vector<float> values = numbers<float>(group.rank(), 50, 0);
    std::byte answer{};
    if (group.rank() == 1) group.receive({&answer, 1}, 0, 0).wait();
    bool served = false;
    const auto ticket = lane.lane.sum(lane.group, {shared(values, even_shares(50, 2))}, "a sum");
    lane.lane.wait(ticket, [&] {
      if (group.rank() == 0 && !served) group.send({&answer, 1}, 1, 0).wait();
      return !std::exchange(served, true);
    });
    EXPECT_TRUE(served || group.rank() == 1);
  });
}

constexpr const char* kName = "REDUCE_GRAD of stage 1";

// What each rank reports when the culprit does `instead` of its part in a sum. Waiting ranks serve
// `meanwhile`.
std::map<int, std::string> reports(int ranks, int culprit, Seconds timeout,
                                   const std::function<void(Communicator&)>& instead,
                                   const std::function<bool(Communicator&)>& meanwhile = {}) {
  std::map<int, std::string> lines;
  const auto body = [&](Communicator& group) {
    if (timeout < 1) group.barrier();  // all have begun before anybody's time runs
    if (group.rank() == culprit) return instead(group);
    Lane<float> lane(group, {4, 2}, 100, timeout);
    std::vector<float> values(90);
    const auto ticket = lane.lane.sum(lane.group, {shared(values, even_shares(90, ranks))}, kName);
    lane.lane.wait(ticket, [&] { return meanwhile && meanwhile(group); });
  };
  const auto report = [&](int rank, const std::exception& failure) { lines[rank] = failure.what(); };
  EXPECT_THROW(run_ranks(ranks, body, report), RunError);
  return lines;
}

TEST(ShareLane, ARankThatFailsIsNamedWithTheOperation) {
  for (const int ranks : {2, 3, 5}) {
    const auto lines = reports(ranks, 1, 60, [](Communicator&) { throw RunError("the disk is full"); });
    EXPECT_EQ(lines.size(), static_cast<std::size_t>(ranks));
    for (const auto& [rank, line] : lines) {
      EXPECT_EQ(line, rank == 1
                          ? "the disk is full"
                          : std::string("rank 1 failed: the disk is full (noticed during ") + kName + ")");
    }
  }
}

// It is noticed by what is served during the wait.
TEST(ShareLane, ARankThatFailsIsNamedWithTheOperationWhileOthersAreServed) {
  const auto fail = [](Communicator&) { throw RunError("the disk is full"); };
  const auto serve = [](Communicator& group) {
    std::byte byte{};
    group.receive({&byte, 1}, 1, 0).wait();
    return true;
  };
  EXPECT_EQ(reports(2, 1, 60, fail, serve).at(0),
            std::string("rank 1 failed: the disk is full (noticed during ") + kName + ")");
}

TEST(ShareLane, ARankThatNeverComesIsNamedWithTheOperationWhenTheTimeIsUp) {
  const auto sleep = [](Communicator&) { std::this_thread::sleep_for(std::chrono::milliseconds(600)); };
  const std::string line = reports(2, 1, 0.25, sleep).at(0);
  EXPECT_EQ(line, std::string(kName) +
                      ": waited 250 ms for the message to rank 1 on channel 3 (16 B) without progress; "
                      "is rank 1 stuck?");
  for (const auto& [rank, text] : reports(4, 2, 0.25, sleep))
    EXPECT_TRUE(text.find(kName) != std::string::npos && text.find("rank 2") != std::string::npos) << text;
}

}  // namespace
}  // namespace penstock::comm
