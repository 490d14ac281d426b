// SPDX-License-Identifier: Apache-2.0
// A replica that is killed or stuck in the middle of a step: the others end soon with exit code 3 and name
// the rank and the collective in which they noticed it.
#include <gtest/gtest.h>

#include "runs/endless_run.h"

namespace penstock::testing {
namespace {

// A run whose steps are collectives between replicas for the most part: many weights, few tokens.
Arguments settings_of(int replicas, int devices, const std::string& shard) {
  return {"--parallel.dp",     std::to_string(replicas),
          "--parallel.pp",     std::to_string(devices),
          "--parallel.shard",  shard,
          "--model.vocab",     "32000",
          "--model.hidden",    "512",
          "--data.seq_len",    "8",
          "--schedule.slices", "1"};
}

// A stage's weights are gathered at the beginning of a step, before its gradients are reduced.
Arguments collectives_of(const std::string& shard, int stage) {
  Arguments names{"REDUCE_GRAD of stage " + std::to_string(stage)};
  if (shard != "off") names.push_back("GATHER_WEIGHTS of stage " + std::to_string(stage));
  return names;
}

// The last of the ranks, which is stopped until the others wait for it.
void expect_named_when_killed(int replicas, int devices, const std::string& shard) {
  SCOPED_TRACE(std::to_string(replicas) + " replicas of " + std::to_string(devices) + " devices, " + shard);
  EndlessRun run(replicas * devices, settings_of(replicas, devices, shard));
  const std::size_t ranks = static_cast<std::size_t>(replicas) * static_cast<std::size_t>(devices);
  ASSERT_EQ(run.ranks().size(), ranks);
  run.stop(ranks - 1);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSlowness));
  kill(run.ranks().back(), SIGKILL);
  const Ending ending = run.end();
  expect_ended_by_the_rest(ending, run);
  EXPECT_TRUE(is_named(ending, ranks - 1, collectives_of(shard, devices - 1))) << ending.err;
}

TEST(FailingReplica, ThatIsKilledIsNamedWithTheCollective) {
  expect_named_when_killed(2, 1, "off");
  expect_named_when_killed(2, 1, "weights");
  expect_named_when_killed(2, 2, "optimizer");
}

// Whether the stuck rank is named with a collective; that it is named, always.
bool is_named_with_a_collective(int replicas, int devices, const std::string& shard) {
  constexpr Seconds kTimeout = 2;
  Arguments settings = settings_of(replicas, devices, shard);
  settings.insert(settings.end(), {"--train.timeout", "2"});
  const std::size_t ranks = static_cast<std::size_t>(replicas) * static_cast<std::size_t>(devices);
  std::optional<EndlessRun> run;
  // Where other tests keep the cores busy, a rank's start may take longer than the time limit of the others.
  for (int tries = 0; tries < 3 && (!run || run->ranks().size() != ranks); ++tries)
    run.emplace(replicas * devices, settings);
  if (run->ranks().size() != ranks) {
    ADD_FAILURE() << "the run ended by itself: " << run->end().err;
    return false;
  }
  run->stop(ranks - 1);
  const Ending ending = run->end();
  EXPECT_EQ(ending.exit_code, 3) << ending.err;
  EXPECT_LT(ending.seconds, kTimeout + kPatience);
  EXPECT_TRUE(is_named(ending, ranks - 1, {""})) << ending.err;
  EXPECT_EQ(left_running(run->ranks()), std::vector<int>{});
  return is_named(ending, ranks - 1, collectives_of(shard, devices - 1));
}

// A rank that is stopped while it computes is missed first by its pipeline, whose complaint ends the others.
void expect_named_when_stuck(int replicas, int devices, const std::string& shard) {
  SCOPED_TRACE(std::to_string(replicas) + " replicas of " + std::to_string(devices) + " devices, " + shard);
  const int runs = devices == 1 ? 1 : 5;
  for (int run = 0; run < runs && !::testing::Test::HasFailure(); ++run) {
    if (is_named_with_a_collective(replicas, devices, shard)) return;
  }
  ADD_FAILURE() << "no collective was named in " << runs << " runs";
}

TEST(FailingReplica, ThatIsStuckIsNamedWithTheCollectiveWhenTheTimeIsUp) {
  expect_named_when_stuck(2, 1, "off");
  expect_named_when_stuck(2, 1, "weights");
  expect_named_when_stuck(2, 2, "optimizer");
}

}  // namespace
}  // namespace penstock::testing
