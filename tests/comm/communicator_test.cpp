// SPDX-License-Identifier: Apache-2.0
// The contract, on the transports that live in one process.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "comm/collectives.h"
#include "comm/contract.h"
#include "comm/polling.h"
#include "comm/single.h"
#include "comm/threads.h"
#include "failure.h"

namespace penstock::comm {
namespace {

const auto law_name = [](const auto& info) { return info.param.name; };

class Single : public ::testing::TestWithParam<Law> {};

TEST_P(Single, Keeps) { GetParam().holds(*make_single()); }

INSTANTIATE_TEST_SUITE_P(Contract, Single, ::testing::ValuesIn(contract()), law_name);

class Threads : public ::testing::TestWithParam<Law> {};

TEST_P(Threads, Keep) {
  for (int ranks : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    run_ranks(ranks, GetParam().holds);
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, Threads, ::testing::ValuesIn(contract()), law_name);

class Polling : public ::testing::TestWithParam<Law> {};

TEST_P(Polling, Keep) {
  for (int ranks : {2, 5}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    run_ranks(ranks,
              [](Communicator& inner) { GetParam().holds(*make_polling(inner, [] { return false; })); });
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, Polling, ::testing::ValuesIn(contract()), law_name);

TEST(Polling, NamesRanksOfTheWorldInASubGroup) {
  const auto body = [](Communicator& world) {
    const auto part = world.split(world.rank() % 2, world.rank());
    const auto polling = make_polling(
        *part, [] { return false; }, 0.05);
    std::byte byte{};
    if (world.rank() == 1) polling->receive({&byte, 1}, 1, 0).wait();
  };
  const std::string told = failure<RunError>([&] { run_ranks(4, body); });
  EXPECT_NE(told.find("is rank 3 stuck?"), std::string::npos) << told;
}

TEST(Polling, ServesWhileItWaits) {
  run_ranks(2, [](Communicator& inner) {
    if (inner.rank() == 1) {  // sends what the other waits for only when it has been served
      std::byte served;
      inner.receive({&served, 1}, 0, 1).wait();
      inner.send({&served, 1}, 0, 0).wait();
      return inner.barrier();
    }
    std::byte byte{7}, answer{};
    const auto polling = make_polling(inner, [&] {
      if (byte == std::byte{0}) return false;
      inner.send({&byte, 1}, 1, 1).wait();
      byte = std::byte{0};
      return true;
    });
    polling->receive({&answer, 1}, 1, 0).wait();
    EXPECT_EQ(answer, std::byte{7});
    inner.barrier();
  });
}

// A rank of two whose messages arrive in five parts, one every so many seconds.
class InParts final : public Collectives {
 public:
  explicit InParts(Seconds pace) : Collectives(group_of_all(0, 2)), pace_(pace) {}
  void abort(const std::string&) override {}
  void throw_if_failed() override {}

 protected:
  struct Arriving final : Request::State {
    explicit Arriving(Seconds pace) : pace_(pace) {}
    bool test() override { return progress() >= 5; }
    void wait() override { ADD_FAILURE() << "a polling wait tests"; }
    std::int64_t progress() const override {
      return static_cast<std::int64_t>((steady_seconds() - began_) / pace_);
    }
    Seconds pace_, began_ = steady_seconds();
  };
  Request post_send(std::span<const std::byte>, int, int) override { return {}; }
  Request post_receive(std::span<std::byte>, int, int) override {
    return Request(std::make_unique<Arriving>(pace_));
  }
  std::unique_ptr<Communicator> subgroup(Group, int) override { return nullptr; }

 private:
  Seconds pace_;
};

TEST(Polling, WaitsAsLongAsTheMessageMoves) {
  const auto wait = [](Seconds pace) {
    InParts inner(pace);
    const auto polling = make_polling(
        inner, [] { return false; }, 0.3);
    std::byte byte{};
    polling->receive({&byte, 1}, 1, 0).wait();
  };
  EXPECT_EQ(failure<RunError>([&] { wait(0.1); }), "") << "in all it takes longer";
  EXPECT_NE(failure<RunError>([&] { wait(60); }).find("without progress"), std::string::npos);
}

TEST(Polling, EndsAWaitByTheExceptionOfItsWork) {
  run_ranks(1, [](Communicator& inner) {
    std::byte byte;
    const auto polling = make_polling(inner, []() -> bool { throw RunError("enough"); });
    try {
      polling->receive({&byte, 1}, 0, 0).wait();
      ADD_FAILURE() << "nothing was sent";
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "enough");
    }
  });
}

TEST(Single, IsRankZeroOfOne) {
  const auto alone = make_single();
  EXPECT_EQ(alone->rank(), 0);
  EXPECT_EQ(alone->size(), 1);
}

}  // namespace
}  // namespace penstock::comm
