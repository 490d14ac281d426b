// SPDX-License-Identifier: Apache-2.0
// Slow ranks are told from disturbed steps.
#include "train/record/rank_times.h"

#include <gtest/gtest.h>

#include <mutex>

#include "comm/threads.h"

namespace penstock::train {
namespace {

// time(rank, step); the comparisons of all steps, as every rank has them, and of the run.
template <class Time>
std::pair<std::vector<RankTimes>, RankTimes> watch_times(int ranks, int steps, Time&& time) {
  std::pair<std::vector<RankTimes>, RankTimes> found;
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    RankTimeWatch watch(comm::World(world), comm::names_of_ranks({.pipeline = ranks}, world));
    std::vector<RankTimes> all;
    for (int step = 0; step < steps; ++step) {
      if (auto times = watch.note(time(world.rank(), step))) all.push_back(std::move(*times));
    }
    const auto of_run = watch.of_run();
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) found = {all, of_run.value_or(RankTimes{})};
  });
  return found;
}

TEST(RankTimes, NameARankThatIsSlowForTwentySteps) {
  const auto [all, of_run] = watch_times(4, 45, [](int rank, int) { return rank == 2 ? 1.3 : 1.0; });
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].slow(), std::vector<int>{2});
  EXPECT_DOUBLE_EQ(all[0].greatest(), 1.3);
  EXPECT_DOUBLE_EQ(of_run.times.at(2), 1.3);
}

TEST(RankTimes, NameNoRankForAFewSlowStepsOrALittle) {
  EXPECT_EQ(watch_times(3, 20, [](int rank, int step) { return rank == 1 && step < 9 ? 50.0 : 1.0; })
                .first[0]
                .slow(),
            std::vector<int>{});
  EXPECT_EQ(watch_times(3, 20, [](int rank, int) { return rank == 1 ? 1.19 : 1.0; }).first[0].slow(),
            std::vector<int>{});
}

// The slow one of two is not the measure.
TEST(RankTimes, OfTwoRanksNameTheSlowerOne) {
  const auto [all, of_run] = watch_times(2, 20, [](int rank, int) { return rank == 0 ? 2.0 : 1.0; });
  EXPECT_EQ(all.at(0).slow(), std::vector<int>{0});
}

TEST(RankTimes, AreOfTheStepsThereAreInAShortRun) {
  const auto [all, of_run] = watch_times(2, 3, [](int rank, int) { return rank == 0 ? 1.5 : 1.0; });
  EXPECT_TRUE(all.empty());
  EXPECT_DOUBLE_EQ(of_run.times.at(0), 1.5);
}

TEST(RankTimes, AreNoneWhereRanksCannotBeCompared) {
  EXPECT_TRUE(watch_times(2, 30, [](int, int) { return std::optional<double>(); }).second.times.empty());
  EXPECT_TRUE(watch_times(1, 30, [](int, int) { return 1.0; }).second.times.empty());
}

}  // namespace
}  // namespace penstock::train
