// SPDX-License-Identifier: Apache-2.0
// Without a common file system: what rank 0 writes for all has the bytes that all write together, and what it
// reads for all is loaded to the bit.
#include "train/checkpoint/gathered_share.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "comm/threads.h"
#include "failure.h"
#include "faulty_files.h"
#include "nn/tensor_checks.h"
#include "scratch.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/first_at_work.h"
#include "train/checkpoint/weights_file.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

// A step, its checkpoint, the weights.
void write_state(const run::Run& run, const std::string& directory, bool gather) {
  std::filesystem::create_directory(directory);
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    step_on_drawn_tokens(run, trainer, world.rank(), 1);
    auto saver = saver_of(run, directory, trainer, world, 2,
                          gather ? train::Sharing::FirstRank : train::Sharing::AllRanks);
    saver.begin(facts_of(run, 1, trainer));
    saver.settle();
    train::write_weights(directory + "/weights.safetensors", run.shape(), trainer.parameters(),
                         comm::World(world), gather);
  });
}

TEST(GatheredFiles, HaveTheBytesThatAllRanksWrite) {
  const FaultyFiles quick;
  for (const run::Run& run :
       {sharded_plan(2, 1, 2, "weights"), sharded_plan(3, 1, 1, "off"), sharded_plan(1, 2, 2, "optimizer")}) {
    const Scratch scratch;
    write_state(run, scratch / "all", false);
    write_state(run, scratch / "first", true);
    EXPECT_EQ(files_below(scratch / "first"), files_below(scratch / "all"));
    EXPECT_GT(files_below(scratch / "all").size(), 4);
  }
}

// That a rank waits for a message; several times what a busy machine may hold it up between two of them.
constexpr Seconds kMessageLimit = 2;

// Every write takes a while.
class SlowDisk final : public FaultyFiles {
 public:
  ssize_t write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(65));
    return FaultyFiles::write_at(descriptor, bytes, offset);
  }
};

// How long two ranks' writing of their weights takes one of them, which calls begin() first. Nobody waits
// longer than the limit for a message.
template <class Begin>
Seconds seconds_of_writing(int timed, bool gather, Begin&& begin) {
  const run::Run run = planned(small_options("slimpipe", 2, 4, "bf16"));
  const Scratch scratch;
  Seconds took = 0;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    if (world.rank() == timed) begin();
    world.barrier();
    world.set_timeout(kMessageLimit);
    const Seconds began = steady_seconds();
    train::write_weights(scratch / "weights", run.shape(), trainer.parameters(), comm::World(world), gather);
    if (world.rank() == timed) took = steady_seconds() - began;
  });
  EXPECT_TRUE(std::filesystem::exists(scratch / "weights"));
  return took;
}

// Which takes longer than a rank waits for a message, for the last rank's turn and until all are done.
TEST(GatheredFiles, AreWaitedForWhileTheFirstRankWrites) {
  SlowDisk slow;
  EXPECT_GT(seconds_of_writing(0, /*gather=*/true, [] {}), 2 * kMessageLimit)
      << "so that each of two ranks takes longer than that";
}

// work(first) on rank 0, while two ranks wait for its end, of which rank 1 has a turn.
template <class Work>
void while_two_wait(Work&& work) {
  comm::run_ranks(3, [&](comm::Communicator& world) {
    world.barrier();
    world.set_timeout(kMessageLimit);
    train::FirstAtWork first{comm::World(world)};
    if (world.rank() == 1) first.await_turn();
    if (world.rank() > 0) return first.await_end();
    work(first);
    first.done();
  });
}

TEST(FirstAtWork, IsGivenUpOnlyWhenItDoesNothing) {
  const auto failed = [&](bool tells) {
    return failure<RunError>([&] {
      while_two_wait([&](train::FirstAtWork& first) {
        for (int part = 0; part < 20; ++part) {
          std::this_thread::sleep_for(std::chrono::milliseconds(220));
          if (part == 10) first.give_turn(1);
          if (tells) first.still_working();
        }
      });
    });
  };
  EXPECT_EQ(failed(true), "");
  EXPECT_NE(failed(false).find("waited "), std::string::npos);
}

// Its last part and the flush after it each take less than a wait may, but not both together.
TEST(FirstAtWork, TellsTheRankWhoseTurnHasJustEnded) {
  while_two_wait([&](train::FirstAtWork& first) {
    const auto long_part = std::chrono::duration<double>(0.6 * kMessageLimit);
    first.give_turn(1);
    std::this_thread::sleep_for(long_part);
    first.still_working(1);
    first.still_working();
    std::this_thread::sleep_for(long_part);
  });
}

// Rank 1 works longer than a wait may take, and rank 2 longer than rank 1 by that; both are sent words that
// they take only afterwards.
TEST(AllAtWork, IsGivenUpOnlyWhenARankDoesNothing) {
  const auto failed = [](bool tell) {
    return failure<RunError>([&] {
      comm::run_ranks(3, [&](comm::Communicator& world) {
        world.barrier();
        world.set_timeout(kMessageLimit);
        train::AllAtWork work{comm::World(world)};
        for (int part = 0; part < 11 * world.rank(); ++part) {
          std::this_thread::sleep_for(std::chrono::milliseconds(220));
          if (tell) work.still_working();
        }
        work.end();
        world.barrier();
      });
    });
  };
  EXPECT_EQ(failed(true), "");
  EXPECT_NE(failed(false).find("waited "), std::string::npos);
}

// Every write of one thread takes a while.
class SlowForOne final : public FaultyFiles {
 public:
  void slow_here() { slow_ = std::this_thread::get_id(); }
  ssize_t write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset) override {
    if (std::this_thread::get_id() == slow_.load())
      std::this_thread::sleep_for(std::chrono::milliseconds(130));
    return FaultyFiles::write_at(descriptor, bytes, offset);
  }

 private:
  std::atomic<std::thread::id> slow_;
};

TEST(Weights, AreWaitedForWhileOneRankWritesItsPart) {
  SlowForOne disk;
  EXPECT_GT(seconds_of_writing(1, /*gather=*/false, [&] { disk.slow_here(); }), 1.5 * kMessageLimit);
}

TEST(GatheredFiles, AreLoadedWhereOnlyTheFirstRankReads) {
  const FaultyFiles quick;
  const Scratch scratch;
  write_state(sharded_plan(2, 2, 2, "weights"), scratch / "x", true);
  const train::CheckpointDirectory checkpoints(scratch / "x");
  const auto facts = train::read_checkpoint_facts(checkpoints, 1);
  const run::Run run = sharded_plan(2, 1, 2, "optimizer");
  const auto wanted = loaded(run, scratch / "x", 1);
  std::map<std::string, at::Tensor> state;
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const std::string seen = world.rank() == 0 ? checkpoints.of_step(1) : scratch / "none";
    train::load_state(*train::state_in_files_of_first(seen, comm::World(world)), facts, trainer);
    const std::lock_guard lock(mutex);
    collect_state(trainer, state);
  });
  ASSERT_EQ(state.size(), wanted.size());
  for (const auto& [name, tensor] : state) expect_same_bits(tensor, wanted.at(name), name);
}

}  // namespace
}  // namespace penstock::testing
