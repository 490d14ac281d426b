// SPDX-License-Identifier: Apache-2.0
// What a run keeps of its state, from start to start.
#include "train/checkpoint/keeper.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "scratch.h"
#include "train/checkpoint/run_number.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

// The run's number after a start with train.buddy_every = `every` that does this with step 1. `newest`: the
// checkpoint on disk.
using StartOfKeeper = std::function<void(train::StateKeeper&, const train::StateKeeper::Facts&)>;
std::string number_after_start(const Scratch& scratch, std::int64_t every, const StartOfKeeper& work,
                               std::int64_t newest = 0) {
  run::Run run = sharded_plan(1, 1, 1, "off");
  run.options.output.dir = scratch / "run";
  run.options.train.buddy_dir = scratch / "memory";
  run.options.train.buddy_every = every;
  std::string number;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const train::StateKeeper::Facts facts = [&] { return facts_of(run, 1, trainer); };
    train::StateKeeper keeper(run, train::checkpoints_of(run), newest, trainer, facts, comm::World(world));
    work(keeper, facts);
    number = train::run_number(run.options.output.dir, comm::World(world));
  });
  return number;
}

// Or else copies of a host that was absent would be taken up when it is back.
TEST(StateKeeper, ForgetsTheNumberOfCopiesThatAreVoid) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "run");
  const auto copies = [](auto& keeper, const auto& facts) { keeper.copy(1, facts); };
  const auto settles = [](auto& keeper, const auto&) { keeper.settle(); };
  const auto saves = [](auto& keeper, const auto& facts) {
    keeper.save(facts);
    keeper.settle();
  };
  const auto forgets = [](auto& keeper, const auto&) { keeper.forget_copies(); };
  const std::string first = number_after_start(scratch, 1, copies);
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(number_after_start(scratch, 0, settles), first) << "there is no newer checkpoint";
  EXPECT_EQ(number_after_start(scratch, 0, saves), "");
  const std::string second = number_after_start(scratch, 1, copies);
  EXPECT_EQ(second.size(), 16u);
  EXPECT_NE(second, first);
  EXPECT_EQ(number_after_start(scratch, 1, copies), second) << "it goes on from copies";
  const std::string third = number_after_start(scratch, 1, copies, 1);
  EXPECT_EQ(third.size(), 16u);
  EXPECT_NE(third, second) << "it goes on from a checkpoint";
  EXPECT_EQ(number_after_start(scratch, 1, forgets), "");
}

}  // namespace
}  // namespace penstock::testing
