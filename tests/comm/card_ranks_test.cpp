// SPDX-License-Identifier: Apache-2.0
// Ranks with a card each: messages of cards' memory by NCCL (a fake one, fake_nccl.h), others by the control
// communicator; order, failures and errors.
#include "comm/cards/card_ranks.h"

#include <gtest/gtest.h>

#include <numeric>

#include "comm/contract.h"
#include "comm/fake_nccl.h"
#include "comm/lagging_card.h"
#include "comm/threads.h"
#include "failure.h"

namespace penstock::comm {
namespace {

constexpr std::size_t kCount = 500;
constexpr int kRounds = 20;

class CardRanks : public ::testing::Test {
 protected:
  std::span<float> numbers(std::size_t count = kCount) {
    return {reinterpret_cast<float*>(card_.allocate(count * sizeof(float))), count};
  }
  void fill(std::span<float> values, float value) { card_.fill(values.data(), values.size(), value); }
  std::vector<float> read(std::span<float> values) {
    std::vector<float> host(values.size());
    card_.copy(host.data(), values.data(), values.size_bytes());
    card_.synchronize();
    return host;
  }
  static std::span<std::byte> bytes(std::span<float> values) { return std::as_writable_bytes(values); }

  void on_ranks(int ranks, const std::function<void(Communicator&)>& body) {
    run_ranks(ranks, [&](Communicator& control) { body(*make_card_ranks(control, nccl_.functions())); });
  }

  testing::FakeNccl nccl_;  // destroyed last
  testing::LaggingCard card_;
};

// The contract of all transports, by messages of the host's. Those of a card have no lengths to refuse, and
// are there when the receiver's stream has come so far, not when a wait is over: they have the tests below.
class CardRanksContract : public ::testing::TestWithParam<Law> {};

TEST_P(CardRanksContract, Keep) {
  testing::FakeNccl nccl;
  testing::LaggingCard card;
  for (const int ranks : {1, 2, 5}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    run_ranks(ranks,
              [&](Communicator& control) { GetParam().holds(*make_card_ranks(control, nccl.functions())); });
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, CardRanksContract, ::testing::ValuesIn(contract()),
                         [](const auto& info) { return info.param.name; });

// Neighbours send both ways at once on two channels, and words of the host's between.
TEST_F(CardRanks, KeepOrderOnEveryChannelAndBothWays) {
  on_ranks(3, [&](Communicator& world) {
    const int rank = world.rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
    std::map<int, std::span<float>> sent, received;
    for (const int channel : {3, 7}) {
      sent[channel] = numbers();
      received[channel] = numbers();
    }
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Request> requests;
      int word = 100 * rank + round, theirs = -1;
      for (auto& [channel, buffer] : sent) {
        fill(buffer, static_cast<float>(1000 * rank + 10 * round + channel));
        fill(received[channel], -1.0f);
        requests.push_back(world.receive(bytes(received[channel]), before, channel));
        requests.push_back(world.send(bytes(buffer), next, channel));
      }
      requests.push_back(world.receive(writable_bytes_of(theirs), before, 3));
      requests.push_back(world.send(bytes_of(word), next, 3));
      for (Request& request : requests) request.wait();
      EXPECT_EQ(theirs, 100 * before + round);
      for (auto& [channel, buffer] : received) {
        const auto wanted = static_cast<float>(1000 * before + 10 * round + channel);
        EXPECT_EQ(read(buffer), std::vector<float>(kCount, wanted))
            << "rank " << rank << ", channel " << channel;
        fill(sent[channel], -2.0f);
      }
    }
  });
}

TEST_F(CardRanks, GatherAndSplit) {
  on_ranks(4, [&](Communicator& world) {
    const auto half = world.split(world.rank() / 2, world.rank());
    const std::span<float> mine = numbers(), all = numbers(2 * kCount);
    fill(mine, static_cast<float>(world.rank()));
    half->all_gather(bytes(mine), bytes(all));
    fill(mine, -1.0f);
    const std::vector<float> got = read(all);
    EXPECT_EQ(got[3], static_cast<float>(world.rank() / 2 * 2));
    EXPECT_EQ(got[kCount + 3], static_cast<float>(world.rank() / 2 * 2 + 1));
    double sum = world.rank();
    world.all_reduce(&sum, 1, Type::F64, Reduction::Sum);
    EXPECT_EQ(sum, 6);
  });
  EXPECT_EQ(nccl_.ended, 8) << "in each group a link each way, which has two ends";
}

// Each rank meets its links by direction and rank, so two that send to each other meet theirs crosswise.
TEST_F(CardRanks, EndTheirLinksInAnyOrder) {
  on_ranks(2, [&](Communicator& world) {
    const int other = 1 - world.rank();
    const std::span<float> mine = numbers(), theirs = numbers();
    fill(mine, static_cast<float>(world.rank()));
    Request received = world.receive(bytes(theirs), other, 0), sent = world.send(bytes(mine), other, 0);
    received.wait();
    sent.wait();
    EXPECT_EQ(read(theirs), std::vector<float>(kCount, static_cast<float>(other)));
  });
  EXPECT_EQ(nccl_.ended, 4);
}

// One rank fails while the other waits for its message.
TEST_F(CardRanks, ALostRankEndsTheWaitWithItsReason) {
  const std::string text = failure<RunError>([&] {
    on_ranks(2, [&](Communicator& world) {
      const std::span<float> room = numbers();
      fill(room, 1.0f);
      world.rank() == 0 ? world.receive(bytes(room), 1, 0).wait() : world.send(bytes(room), 0, 0).wait();
      if (world.rank() == 1) throw RunError("the card fell off the bus");
      world.receive(bytes(room), 1, 0).wait();
    });
  });
  EXPECT_EQ(text, "the card fell off the bus");
}

TEST_F(CardRanks, AnErrorOfNcclIsToldInItsWords) {
  nccl_.join_result = testing::FakeNccl::kRefused;
  const auto receive = [&](Communicator& world) {
    const std::span<float> room = numbers();
    world.rank() == 0 ? world.receive(bytes(room), 1, 0).wait() : world.send(bytes(room), 0, 0).wait();
  };
  EXPECT_EQ(failure<RunError>([&] { on_ranks(2, receive); }), "NCCL: the card refuses");
}

TEST_F(CardRanks, AnErrorThatComesLaterEndsTheWait) {
  const std::string text = failure<RunError>([&] {
    on_ranks(2, [&](Communicator& world) {
      const std::span<float> room = numbers();
      world.rank() == 0 ? world.receive(bytes(room), 1, 0).wait() : world.send(bytes(room), 0, 0).wait();
      world.barrier();
      nccl_.async_error = testing::FakeNccl::kLost;
      if (world.rank() == 0) world.receive(bytes(room), 1, 0).wait();
      world.barrier();
    });
  });
  EXPECT_EQ(text, "NCCL: an error of the network");
}

TEST_F(CardRanks, ARankThatSendsNothingIsNamed) {
  const std::string text = failure<RunError>([&] {
    on_ranks(2, [&](Communicator& world) {
      const std::span<float> room = numbers();
      world.rank() == 0 ? world.receive(bytes(room), 1, 4).wait() : world.send(bytes(room), 0, 4).wait();
      if (world.rank() == 0) world.set_timeout(0.2);
      if (world.rank() == 0) world.receive(bytes(room), 1, 4).wait();
      world.barrier();
    });
  });
  EXPECT_NE(text.find("from rank 1 on channel 4"), std::string::npos) << text;
}

}  // namespace
}  // namespace penstock::comm
