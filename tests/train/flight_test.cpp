// SPDX-License-Identifier: Apache-2.0
// Who holds up all the others: told by following who waits for whom, of positions made up and of ranks that
// really wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <list>
#include <mutex>
#include <thread>

#include "comm/collectives.h"
#include "comm/polling.h"
#include "comm/threads.h"
#include "failure.h"
#include "files/mapped_file.h"
#include "scratch.h"
#include "train/flight/flight_recorder.h"

namespace penstock::testing {
namespace {

using train::Position;
using train::Positions;

constexpr int kChannel = 3;

Position at_work(int rank, Seconds seconds) {
  return {.rank = rank, .step = 7, .work = "1F2", .working = seconds};
}

comm::RankNames names_of(std::size_t ranks) {
  comm::RankNames names;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    names.push_back({"p" + std::to_string(rank), "n" + std::to_string(rank)});
  return names;
}

std::string culprit(const Positions& positions) {
  return train::culprit(positions, names_of(positions.size()));
}

Position waiting(int rank, int peer, Seconds seconds, bool sending = false) {
  Position position = at_work(rank, seconds);
  position.wait = {.sending = sending, .peer = peer, .channel = kChannel, .waited = seconds};
  return position;
}

TEST(Culprit, IsARankThatDoesNotAnswer) {
  const Positions positions{waiting(0, 1, 9), waiting(1, 2, 8), std::nullopt};
  EXPECT_EQ(culprit(positions),
            "rank 2 (p2, host n2) does not answer: its process is stopped, or its host is lost; rank 0 (p0, "
            "host n0) has waited "
            "9.00 s for rank 1, rank 1 for rank 2");
  EXPECT_EQ(culprit({at_work(0, 0.1), std::nullopt}),
            "rank 1 (p1, host n1) does not answer: its process is stopped, or its host is lost");
}

TEST(Culprit, IsARankThatWaitsForNobody) {
  const Positions positions{waiting(0, 2, 9), waiting(1, 0, 12), at_work(2, 40)};
  EXPECT_EQ(culprit(positions),
            "rank 2 (p2, host n2) waits for no other: for 40.0 s it has been at 1F2 of step 7; rank 1 (p1, "
            "host n1) has "
            "waited 12.0 s for rank 0, rank 0 for rank 2");
}

TEST(Culprit, IsAMessageThatWasSentAndHasNotArrived) {
  Positions positions{waiting(0, 1, 9), waiting(1, 0, 8)};
  positions[1]->passed = {{0, kChannel, 5, 0}};
  positions[0]->passed = {{1, kChannel, 0, 4}, {1, kChannel + 1, 0, 9}};
  EXPECT_EQ(
      culprit(positions),
      "a message on channel 3 from rank 1 (p1, host n1) to rank 0 was sent and has not arrived; rank 0 (p0, "
      "host n0) has waited 9.00 s for rank 1");
  positions[0]->passed[0].received = 5;
  EXPECT_EQ(culprit(positions),
            "each waits for the next; rank 0 (p0, host n0) has waited 9.00 s for rank 1, rank 1 for rank 0");
}

TEST(Positions, NameARankThatDoesNotAnswer) {
  const std::string table = train::print_positions({waiting(0, 1, 9), std::nullopt}, names_of(2));
  EXPECT_NE(table.find("   1  n1    p1        -  does not answer"), std::string::npos) << table;
}

// Two ranks on each host; where hosts have no common directory, those of one host see nothing of the other.
comm::RankNames pairs_of_hosts() { return {{"p0", "a"}, {"p1", "a"}, {"p2", "b"}, {"p3", "b"}}; }

TEST(Culprit, IsNoRankThatAnswersWhereItCannotBeRead) {
  const Positions seen{waiting(0, 1, 9), waiting(1, 2, 8), std::nullopt, std::nullopt};
  EXPECT_EQ(
      train::culprit(seen, pairs_of_hosts(), train::Readable::OwnHost),
      "the trail leads to rank 2 (p2, host b), whose answer is told on its own host and cannot be "
      "read here: follow what that rank prints; rank 0 (p0, host a) has waited 9.00 s for rank 1, rank 1 "
      "for rank 2");
  const std::string silent = " does not answer: its process is stopped, or its host is lost";
  EXPECT_EQ(train::culprit(seen, pairs_of_hosts()).find("rank 2 (p2, host b)" + silent), 0);
  EXPECT_EQ(
      train::culprit({at_work(0, 2), at_work(1, 2), {}, {}}, pairs_of_hosts(), train::Readable::OwnHost),
      "no rank whose answer can be read here has waited longer than 1.00 s");
}

TEST(Culprit, IsASilentRankOfAHostWhoseAnswersAreRead) {
  const Positions seen{waiting(0, 1, 9), std::nullopt, std::nullopt, std::nullopt};
  EXPECT_EQ(train::culprit(seen, pairs_of_hosts(), train::Readable::OwnHost).find("rank 1 (p1, host a) does"),
            0);
  EXPECT_EQ(
      train::culprit(seen, pairs_of_hosts(), train::Readable::OwnRank).find("the trail leads to rank 1"), 0);
  EXPECT_EQ(train::culprit({at_work(0, 2), {}, {}, {}}, pairs_of_hosts(), train::Readable::OwnHost)
                .find("rank 1 (p1, host a) does not answer"),
            0);
}

TEST(Positions, LeaveOutRanksWhoseAnswersCannotBeRead) {
  const Positions seen{waiting(0, 1, 9), std::nullopt, std::nullopt, std::nullopt};
  const auto lines = [&](train::Readable readable) {
    return std::ranges::count(train::print_positions(seen, pairs_of_hosts(), readable), '\n');
  };
  EXPECT_EQ(lines(train::Readable::AllRanks), 1 + 4);
  EXPECT_EQ(lines(train::Readable::OwnHost), 1 + 2);
  EXPECT_EQ(lines(train::Readable::OwnRank), 1 + 1);
}

TEST(Culprit, IsNobodyWhileAllMove) {
  EXPECT_EQ(culprit({waiting(0, 1, 0.2), at_work(1, 3)}), "no rank has waited longer than 1.00 s");
}

TEST(Position, IsReadAsItWasWritten) {
  Position position = waiting(3, 1, 2.5, true);
  position.passed = {{1, -1, 4, 5}, {2, 0, 6, 7}};
  const Position read = train::parse_position(train::json_of(position), "a.json", 3, 4);
  EXPECT_EQ(train::json_of(read), train::json_of(position));
  for (const char* text : {"", "{}", "[1]", "{\"rank\":\"x\"}", "{\"rank\":1,\"rank\":1}"})
    EXPECT_THROW(train::parse_position(text, "a.json", 1, 4), InputError) << text;
  EXPECT_EQ(failure<InputError>([&] { train::parse_position(train::json_of(position), "a.json", 2, 4); }),
            "a.json: is not a position of rank 2 of 4");
  EXPECT_THROW(train::parse_position(train::json_of(waiting(0, 4, 1)), "a.json", 0, 4), InputError);
  position.passed = {{1, -1, 4, -5}};
  EXPECT_THROW(train::parse_position(train::json_of(position), "a.json", 3, 4), InputError)
      << "counts are not negative";
}

// What the recorders of ranks told, and why each rank failed.
struct Told {
  std::vector<std::string> texts;
  std::map<int, std::string> failures;
};

// Ranks that do `work`, with recorders; the first whose wait fails explains.
Told told_by(int ranks, const std::function<void(comm::Communicator&, train::FlightRecorder&)>& work) {
  const Scratch scratch;
  Told told;
  std::mutex mutex;
  const auto body = [&](comm::Communicator& world) {
    world.set_timeout(1.5);
    train::FlightRecorder recorder({.directory = scratch.path(),
                                    .rank = world.rank(),
                                    .names = names_of(static_cast<std::size_t>(ranks)),
                                    .tell =
                                        [&](const std::string& text) {
                                          const std::lock_guard lock(mutex);
                                          told.texts.push_back(text);
                                        },
                                    .patience = 1});
    recorder.begin_step(5);
    try {
      work(world, recorder);
    } catch (const comm::PeerFailure&) {
      throw;
    } catch (const RunError& failure) {
      throw RunError(std::string(failure.what()) + "; " + recorder.explain());
    }
  };
  try {
    comm::run_ranks(ranks, body, [&](int rank, const std::exception& failure) {
      const std::lock_guard lock(mutex);
      told.failures[rank] = failure.what();
    });
  } catch (const RunError&) {
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "where"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "positions"));
  EXPECT_TRUE(told.texts.empty() ||
              files::read_text(scratch / "positions.txt", 1 << 20) == told.texts.back());
  return told;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Rank 0 waits for rank 1, which waits for rank 2, which is busy in an op.
TEST(FlightRecorder, NamesARankThatIsStuckInAnOp) {
  const Told told = told_by(3, [](comm::Communicator& world, train::FlightRecorder& recorder) {
    std::byte byte{};
    if (world.rank() == 2) {
      recorder.enter(schedule::Op{.key = schedule::make_key(2, 4)}, false);
      std::this_thread::sleep_for(std::chrono::seconds(4));
      return;
    }
    world.receive({&byte, 1}, world.rank() + 1, kChannel).wait();
  });
  ASSERT_FALSE(told.texts.empty());
  EXPECT_EQ(first_line(told.texts.front()).find("rank 2 (p2, "), 0) << told.texts.front();
  EXPECT_NE(told.texts.front().find("it has been at 2F4 of step 5"), std::string::npos) << told.texts.front();
  int explained = 0;
  for (const auto& [rank, failure] : told.failures)
    explained += failure.find("; rank 2 (p2, ") != std::string::npos ? 1 : 0;
  EXPECT_GE(explained, 1);
}

// Messages of one channel are lost from the second on.
class Losing final : public comm::Collectives {
 public:
  explicit Losing(comm::Communicator& inner, int lost = kChannel)
      : Collectives(comm::group_of_all(inner.rank(), inner.size())), inner_(inner), lost_(lost) {}
  void abort(const std::string& reason) override { inner_.abort(reason); }
  void throw_if_failed() override { inner_.throw_if_failed(); }

 protected:
  struct Gone final : comm::Request::State {
    bool test() override { return true; }
    void wait() override {}
  };
  comm::Request post_send(std::span<const std::byte> bytes, int to, int channel) override {
    if (channel != lost_ || ++sent_ < 2) return inner_.send(bytes, to, channel);
    return {std::make_unique<Gone>(), {true, to, channel, Bytes(bytes.size())}};
  }
  comm::Request post_receive(std::span<std::byte> bytes, int from, int channel) override {
    return inner_.receive(bytes, from, channel);
  }
  std::unique_ptr<comm::Communicator> subgroup(comm::Group, int) override { return nullptr; }

 private:
  comm::Communicator& inner_;
  const int lost_;
  int sent_ = 0;
};

TEST(FlightRecorder, NamesAMessageThatIsLost) {
  const Told told = told_by(2, [](comm::Communicator& world, train::FlightRecorder&) {
    Losing losing(world);
    std::byte byte{};
    for (int turn = 0; turn < 3; ++turn) {
      if (world.rank() == 0) losing.receive({&byte, 1}, 1, kChannel).wait();
      if (world.rank() == 1) losing.send({&byte, 1}, 0, kChannel).wait();
      if (world.rank() == 0) losing.send({&byte, 1}, 1, kChannel + 1).wait();
      if (world.rank() == 1) losing.receive({&byte, 1}, 0, kChannel + 1).wait();
    }
  });
  ASSERT_FALSE(told.texts.empty());
  EXPECT_EQ(first_line(told.texts.front()).find("a message on channel 3 from rank 1 (p1, "), 0)
      << told.texts.front();
}

// The collectives of a group that polls go by a channel of the group below.
TEST(FlightRecorder, NamesAMessageThatIsLostInACollectiveOfAGroupThatPolls) {
  const Told told = told_by(2, [](comm::Communicator& world, train::FlightRecorder&) {
    Losing losing(world, comm::kChannelLimit - 1);
    const auto polling = comm::make_polling(
        losing, [] { return false; }, 1.5);
    for (int turn = 0; turn < 2; ++turn) polling->barrier();
  });
  ASSERT_FALSE(told.texts.empty());
  EXPECT_EQ(first_line(told.texts.front()).find("a message of a collective from rank "), 0)
      << told.texts.front();
}

// As on a host without the run directory: the rank says where it is, and blames no rank that it cannot read.
TEST(FlightRecorder, AnswersAloneWithoutADirectory) {
  const Scratch scratch;
  std::mutex mutex;
  std::vector<std::string> texts;
  std::string explained;
  comm::run_ranks(2, [&](comm::Communicator& world) {
    train::FlightRecorder recorder({.directory = scratch / "none",
                                    .gathers = true,
                                    .rank = world.rank(),
                                    .names = names_of(2),
                                    .tell =
                                        [&](const std::string& text) {
                                          const std::lock_guard lock(mutex);
                                          texts.push_back(text);
                                        },
                                    .patience = 0.1});
    std::byte byte{};
    if (world.rank() == 0) {
      world.set_timeout(1.1);
      EXPECT_THROW(world.receive({&byte, 1}, 1, kChannel).wait(), RunError);
      explained = recorder.explain();
    }
    world.set_timeout(30);
    world.barrier();
  });
  ASSERT_EQ(texts.size(), 1);
  EXPECT_EQ(explained, first_line(texts[0]));
  EXPECT_EQ(explained.find("the trail leads to rank 1 (p1, host n1), whose answer is told on its own host"),
            0)
      << explained;
  EXPECT_NE(explained.find("; rank 0 (p0, host n0) has waited 1."), std::string::npos) << explained;
  EXPECT_FALSE(std::filesystem::exists(scratch / "none"));
}

// The file of a user asks as well, and the run goes on.
TEST(FlightRecorder, AnswersAUserWhileTheRunGoesOn) {
  const Scratch scratch;
  std::mutex mutex;
  std::vector<std::string> texts;
  comm::run_ranks(2, [&](comm::Communicator& world) {
    train::FlightRecorder recorder({.directory = scratch.path(),
                                    .rank = world.rank(),
                                    .names = names_of(2),
                                    .tell = [&](const std::string& text) {
                                      const std::lock_guard lock(mutex);
                                      texts.push_back(text);
                                    }});
    world.barrier();
    if (world.rank() == 0) scratch.write("where", "");
    const auto told = [&] {
      const std::lock_guard lock(mutex);
      return !texts.empty();
    };
    for (int turn = 0; turn < 500 && !told(); ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    world.barrier();
  });
  ASSERT_EQ(texts.size(), 1);
  EXPECT_EQ(first_line(texts[0]), "no rank has waited longer than 1.00 s");
  EXPECT_FALSE(std::filesystem::exists(scratch / "where"));
}

}  // namespace
}  // namespace penstock::testing
