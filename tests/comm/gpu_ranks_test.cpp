// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each: messages of GPUs' memory by NCCL (a fake one, fake_nccl.h), others by the control
// communicator; order, failures and errors.
#include "comm/gpus/gpu_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "comm/backoff.h"
#include "comm/contract.h"
#include "comm/fake_nccl.h"
#include "comm/gpu_laws.h"
#include "comm/lagging_gpu.h"
#include "comm/share_lane.h"
#include "comm/threads.h"
#include "failure.h"

namespace penstock::comm {
namespace {

constexpr std::size_t kCount = kGpuNumbers;

class GpuRanks : public ::testing::Test {
 public:  // the GPU of gpu_laws.h
  std::span<float> numbers(std::size_t count = kCount) {
    return {reinterpret_cast<float*>(gpu_.allocate(count * sizeof(float))), count};
  }
  void fill(std::span<float> values, float value) { gpu_.fill(values.data(), values.size(), value); }
  std::vector<float> read(std::span<float> values) {
    std::vector<float> host(values.size());
    gpu_.copy(host.data(), values.data(), values.size_bytes());
    gpu_.synchronize();
    EXPECT_EQ(nccl_.sent_here(), 0) << "outside of its waits a rank's GPU waits for no other";
    return host;
  }

 protected:
  static std::span<std::byte> bytes(std::span<float> values) { return bytes_of_numbers(values); }

  void on_ranks(int ranks, const std::function<void(Communicator&)>& body) {
    run_ranks(ranks, [&](Communicator& control) {
      const auto gpus = make_gpu_ranks(control, nccl_.functions());
      gpus->connect_gpus();
      body(*gpus);
    });
  }

  testing::FakeNccl nccl_;  // destroyed last
  testing::LaggingGpu gpu_;
};

// The contract of all transports, by messages of the host's. Those of a GPU are there when the receiver's
// stream has come so far, not when a wait is over: they have the tests below.
class GpuRanksContract : public ::testing::TestWithParam<Law> {};

TEST_P(GpuRanksContract, Keep) {
  testing::FakeNccl nccl;
  testing::LaggingGpu gpu;
  for (const int ranks : {1, 2, 5}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    run_ranks(ranks,
              [&](Communicator& control) { GetParam().holds(*make_gpu_ranks(control, nccl.functions())); });
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, GpuRanksContract, ::testing::ValuesIn(contract()),
                         [](const auto& info) { return info.param.name; });

TEST_F(GpuRanks, KeepOrderOnEveryChannelAndBothWays) {
  on_ranks(3, [&](Communicator& world) { keep_order_on_every_channel_and_both_ways(world, *this); });
  EXPECT_EQ(nccl_.early, 0) << "a GPU is given what is going already";
}

TEST_F(GpuRanks, GatherAndSplit) {
  on_ranks(4, [&](Communicator& world) { gather_and_split(world, *this); });
  EXPECT_EQ(nccl_.ended, 24) << "between every two ranks a link each way, which has two ends";
}

// Each rank meets its links by direction and rank, so two that send to each other meet theirs crosswise.
TEST_F(GpuRanks, EndTheirLinksInAnyOrder) {
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

// Where all ranks sent before they received, every GPU would wait for another one's host.
TEST_F(GpuRanks, ReceivesThatArePostedFarAheadHoldNothingUp) {
  on_ranks(4, [&](Communicator& world) {
    const int rank = world.rank(), next = (rank + 1) % 4, before = (rank + 3) % 4;
    const std::span<float> later = numbers(), sooner = numbers(), mine = numbers();
    Request ahead = world.receive(bytes(later), before, 1), soon = world.receive(bytes(sooner), before, 0);
    fill(mine, static_cast<float>(rank));
    Request sent = world.send(bytes(mine), next, 0);
    EXPECT_EQ(nccl_.sent_here(), 0);
    soon.wait();
    EXPECT_EQ(read(sooner), std::vector<float>(kCount, static_cast<float>(before)));
    sent.wait();
    world.send(bytes(mine), next, 1).wait();
    ahead.wait();
  });
  EXPECT_EQ(nccl_.early, 0);
}

// Until the message has gone, or for 10 s.
bool gone_by_polling(Request& message) {
  const Deadline deadline(10);
  bool gone = message.test();
  for (Backoff backoff; !gone && !deadline.passed(); gone = message.test()) backoff.pause();
  return gone;
}

// As a first stage does during warm-up, which waits for no message.
TEST_F(GpuRanks, SendsGoWhileTheirRankOnlyPolls) {
  on_ranks(2, [&](Communicator& world) {
    const std::span<float> values = numbers();
    if (world.rank() == 1) {
      world.receive(bytes(values), 0, 0).wait();
      EXPECT_EQ(read(values), std::vector<float>(kCount, 4.0f));
    } else {
      fill(values, 4);
      Request sent = world.send(bytes(values), 1, 0);
      EXPECT_TRUE(gone_by_polling(sent));
    }
  });
}

// Otherwise the sender would be held up for as long as the receiver's GPU is busy.
TEST_F(GpuRanks, NothingIsSentBeforeTheReceiversGpuHasReachedTheReceive) {
  std::promise<void> busy;
  on_ranks(2, [&](Communicator& world) {
    const std::span<float> values = numbers();
    if (world.rank() == 1) {
      gpu_.issue([done = busy.get_future().share()] { done.wait(); });
      Request received = world.receive(bytes(values), 0, 0);
      int word = 0;
      world.receive(writable_bytes_of(word), 0, 1).wait();  // meanwhile this rank listens
      busy.set_value();
      received.wait();
      EXPECT_EQ(read(values), std::vector<float>(kCount, 4.0f));
    } else {
      fill(values, 4);
      Request sent = world.send(bytes(values), 1, 0);
      for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(sent.test());
        EXPECT_EQ(nccl_.sent_here(), 0);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      const int word = 1;
      world.send(bytes_of(word), 1, 1).wait();
      EXPECT_TRUE(gone_by_polling(sent));
    }
  });
}

// Hosts issue far ahead: a GPU's work before a message may take longer than a wait for another rank may.
TEST_F(GpuRanks, ATimeoutBeginsWhenTheOwnGpuHasReachedTheMessage) {
  constexpr Seconds kTimeout = 0.5;
  const auto work = [&] { gpu_.issue([] { std::this_thread::sleep_for(std::chrono::seconds(1)); }); };
  on_ranks(2, [&](Communicator& world) {
    const int other = 1 - world.rank();
    const ShareLane::Limits limits{.piece = 64, .window = 2};
    const std::span<float> mine = numbers(), theirs = numbers();
    const auto room = numbers(static_cast<std::size_t>(ShareLane::room_for(limits, 2, kCount / 2)));
    ShareLane lane(Type::F32, bytes(room), limits, 3, kTimeout);
    world.set_timeout(kTimeout);
    fill(mine, static_cast<float>(1 + world.rank()));
    work();
    Request received = world.receive(bytes(theirs), other, 0), sent = world.send(bytes(mine), other, 0);
    received.wait();
    sent.wait();
    EXPECT_EQ(read(theirs), std::vector<float>(kCount, static_cast<float>(1 + other)));
    work();
    lane.wait(lane.sum(world, {{bytes(mine).data(), {{0, kCount / 2}, {kCount / 2, kCount / 2}}}}, "the sum"),
              {});
    EXPECT_EQ(read(mine)[static_cast<std::size_t>(world.rank()) * kCount / 2], 3.0f);
    world.set_timeout(120);
  });
}

TEST_F(GpuRanks, AMessageOfAnotherLengthIsRefused) {
  const std::string text = failure<RunError>([&] {
    on_ranks(2, [&](Communicator& world) {
      const std::span<float> room = numbers();
      world.rank() == 0 ? world.receive(bytes(room.first(3)), 1, 0).wait()
                        : world.send(bytes(room), 0, 0).wait();
    });
  });
  EXPECT_EQ(
      text,
      "the message from rank 1 on channel 0 (12 B) arrived with another length: 2000 bytes instead of 12");
}

// One rank fails while the other waits for its message.
TEST_F(GpuRanks, ALostRankEndsTheWaitWithItsReason) {
  const std::string text = failure<RunError>([&] {
    on_ranks(2, [&](Communicator& world) {
      const std::span<float> room = numbers();
      fill(room, 1.0f);
      world.rank() == 0 ? world.receive(bytes(room), 1, 0).wait() : world.send(bytes(room), 0, 0).wait();
      if (world.rank() == 1) throw RunError("the GPU fell off the bus");
      world.receive(bytes(room), 1, 0).wait();
    });
  });
  EXPECT_EQ(text, "the GPU fell off the bus");
}

TEST_F(GpuRanks, AnErrorOfNcclIsToldInItsWords) {
  nccl_.join_result = testing::FakeNccl::kRefused;
  const auto receive = [&](Communicator& world) {
    const std::span<float> room = numbers();
    world.rank() == 0 ? world.receive(bytes(room), 1, 0).wait() : world.send(bytes(room), 0, 0).wait();
  };
  EXPECT_EQ(failure<RunError>([&] { on_ranks(2, receive); }), "NCCL: the GPU refuses");
}

// One direction is linked already, and its end would wait for the other rank.
TEST_F(GpuRanks, ALinkThatFailsInOneDirectionIsToldAtOnce) {
  nccl_.joins_until_refused = 2;
  const auto connect = [&](Communicator& control) {
    control.set_timeout(5);
    make_gpu_ranks(control, nccl_.functions())->connect_gpus();
  };
  EXPECT_EQ(failure<RunError>([&] { run_ranks(2, connect); }), "NCCL: the GPU refuses");
  nccl_.stop();  // the other rank's join
}

TEST_F(GpuRanks, AnErrorThatComesLaterEndsTheWait) {
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

TEST_F(GpuRanks, ARankThatSendsNothingIsNamed) {
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
