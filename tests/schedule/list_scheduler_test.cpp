// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/list_scheduler.h"

#include <gtest/gtest.h>

#include <random>

#include "plain_list_scheduler.h"

namespace penstock::schedule {
namespace {

// Quarters of seconds: sums are exact, so equal times are equal in seconds too.
ListProblem random_problem(std::mt19937& random, int devices, int micro_batches, int chunks, bool alike) {
  const auto up_to = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
  ListProblem problem{.devices = devices, .micro_batches = micro_batches, .home = {}};
  Bytes least = 0;
  for (int stage = 0; stage < devices * chunks; ++stage) {
    problem.home.push_back(stage < devices ? stage : 2 * devices - 1 - stage);
    const bool copies = alike && stage > 0;
    problem.forward.push_back(copies ? problem.forward[0] : up_to(8) / 4.0);
    problem.input.push_back(copies ? problem.input[0] : up_to(8) / 4.0);
    problem.weight.push_back(copies ? problem.weight[0] : up_to(8) / 4.0);
    problem.record.push_back(copies ? problem.record[0] : up_to(3));
    least = std::max(least, chunks * problem.record.back());
  }
  problem.transfer = up_to(2) / 4.0;
  problem.limit = 2 * least + up_to(2 * devices) * least / 2;
  return problem;
}

void expect_equal(ListScheduler& scheduler, const ListProblem& problem, const ListRule& rule, int& stuck) {
  const auto made = scheduler.run(rule, nullptr);
  const auto plain = PlainListScheduler(problem, rule).run();
  ASSERT_EQ(made.has_value(), plain.has_value());
  stuck += !made;
  if (made) {
    EXPECT_EQ(made->rows, *plain);
  }
}

TEST(ListScheduler, MakesWhatAPlainOneMakes) {
  std::mt19937 random(11);
  int stuck = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int devices = 1 + trial % 5, chunks = 1 + trial / 5 % 2;
    // Long ones of equal stages come to repeat themselves.
    const bool alike = trial % 3 > 0;
    const int micro_batches = trial % 3 == 2 ? 60 + trial % 41 : 1 + trial % 23;
    const ListProblem problem = random_problem(random, devices, micro_batches, chunks, alike);
    ListScheduler scheduler(problem);
    std::optional<StepRows> guide;
    for (const auto prefer :
         {ListRule::Prefer::Inputs, ListRule::Prefer::Forwards, ListRule::Prefer::Alternate}) {
      for (const bool later : {true, false}) {
        const ListRule rule{.prefer = prefer, .later_chunks_first = later, .overrun = trial % kOverrunCount};
        expect_equal(scheduler, problem, rule, stuck);
        guide = PlainListScheduler(problem, rule).run();
        ASSERT_TRUE(guide) << "priority rules never get stuck";
        ListProblem other = problem;  // other times and less memory: the guide's order still holds
        other.transfer += 0.25;
        other.limit -= trial % 2 * other.limit / 3;
        ListScheduler guided(other);
        expect_equal(guided, other, {.overrun = (trial + 1) % kOverrunCount, .guide = &*guide}, stuck);
      }
    }
  }
  EXPECT_GT(stuck, 0) << "some guide should not have fitted its limit";
}

// A small search with and without what is known of the best so far.
TEST(ListScheduler, GivesUpOnlyWhatIsNotBetter) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 200; ++trial) {
    const ListProblem problem =
        random_problem(random, 1 + trial % 5, 1 + trial % 40, 1 + trial % 2, trial % 3 > 0);
    ListScheduler scheduler(problem);
    std::optional<ListResult> best, known;
    for (const auto prefer :
         {ListRule::Prefer::Inputs, ListRule::Prefer::Forwards, ListRule::Prefer::Alternate}) {
      for (int overrun = 0; overrun < kOverrunCount; ++overrun) {
        const ListRule rule{.prefer = prefer, .overrun = overrun};
        auto each = scheduler.run(rule, nullptr);
        if (!best || std::pair(each->makespan, each->idle) < std::pair(best->makespan, best->idle))
          best = std::move(each);
        if (auto better = scheduler.run(rule, known ? &*known : nullptr)) known = std::move(better);
      }
    }
    EXPECT_EQ(known->makespan, best->makespan);
    EXPECT_EQ(known->idle, best->idle);
    EXPECT_EQ(known->rows, best->rows);
    const auto replayed = scheduler.replay(best->rows, nullptr);
    ASSERT_TRUE(replayed);
    EXPECT_LE(replayed->makespan, best->makespan);
  }
}

TEST(ListScheduler, NamesTheOverrunsThatWouldHaveDoneTheSame) {
  std::mt19937 random(13);
  int same = 0, different = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const ListProblem problem = random_problem(random, 1 + trial % 5, 1 + trial % 20, 2, trial % 2 == 0);
    ListScheduler scheduler(problem);
    for (int overrun = 0; overrun < kOverrunCount; ++overrun) {
      const auto one = scheduler.run({.overrun = overrun}, nullptr);
      const unsigned named = scheduler.same_overruns();
      EXPECT_TRUE(named >> overrun & 1);
      for (int other = 0; other < kOverrunCount; ++other) {
        const bool equal = scheduler.run({.overrun = other}, nullptr)->rows == one->rows;
        EXPECT_TRUE(equal || !(named >> other & 1));
        (equal ? same : different) += 1;
      }
    }
  }
  EXPECT_GT(same, 0);
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace penstock::schedule
