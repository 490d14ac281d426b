// SPDX-License-Identifier: Apache-2.0
// A replica that is killed or stuck in the middle of a step: the others end soon with exit code 3 and name
// the rank and the collective in which they noticed it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

// mpirun answers a rank's death with SIGTERM to the shell that started each other rank, and to that rank.
constexpr const char* kTellsItsEnd =
    "trap : TERM; \"$0\" \"$@\"; echo \"rank $OMPI_COMM_WORLD_RANK ended with $?\"";

// A run under mpirun whose steps are collectives for the most part: many weights, few tokens.
class ReplicatedRun {
 public:
  ReplicatedRun(int replicas, int devices, const Arguments& settings) {
    scratch_.write("run.toml", small_run_file(scratch_));
    const int ranks = replicas * devices;
    Arguments all =
        with_mpirun(ranks, {"train", scratch_ / "run.toml", "--train.steps", "1000000", "--parallel.dp",
                            std::to_string(replicas), "--parallel.pp", std::to_string(devices),
                            "--model.vocab", "32000", "--model.hidden", "512", "--data.seq_len", "8",
                            "--schedule.slices", "1", "--train.checkpoint_every", "0"});
    all.insert(std::ranges::find(all, PENSTOCK_PROGRAM), {"sh", "-c", kTellsItsEnd});
    all.insert(all.end(), settings.begin(), settings.end());
    program_.emplace(all);
    wait_for_steps(2);
    for (const int shell : ranks_of(program_->process())) {
      for (const int process : children_of(shell)) ranks_.push_back(process);
    }
  }
  // A failed test leaves nothing running either.
  ~ReplicatedRun() {
    for (const int process : ranks_) {
      if (is_running(process) && rank_of(process) >= 0) kill(process, SIGKILL);
    }
  }

  const std::vector<int>& ranks() const { return ranks_; }

  // Stops the rank soon after a step has begun.
  void stop(std::size_t rank) {
    wait_for_steps(steps() + 1);
    sleep_a_little();
    kill(ranks_[rank], SIGSTOP);
  }

  // How the run ends; `seconds` counts from here.
  Ending end() {
    const Seconds begin = seconds_now();
    Ending ending = program_->wait(3 * kPatience);
    ending.seconds = seconds_now() - begin;
    return ending;
  }

 private:
  std::size_t steps() const { return lines_of(scratch_.read("run/metrics.jsonl")).size(); }
  void wait_for_steps(std::size_t count) const {
    const Seconds until = seconds_now() + 60 * kSlowness;
    while (steps() < count && seconds_now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  Scratch scratch_;
  std::optional<RunningProgram> program_;
  std::vector<int> ranks_;
};

// Some line names the rank and one of the collectives.
bool is_named(const Ending& ending, std::size_t rank, const Arguments& collectives) {
  const std::string culprit = "rank " + std::to_string(rank);
  return std::ranges::any_of(ending.complaints(), [&](const std::string& line) {
    return line.find(culprit + " failed: its process is gone") != std::string::npos ||
                   line.find("is " + culprit + " stuck?") != std::string::npos
               ? std::ranges::any_of(
                     collectives,
                     [&](const std::string& name) { return line.find(name) != std::string::npos; })
               : false;
  });
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
  ReplicatedRun run(replicas, devices, {"--parallel.shard", shard});
  const std::size_t ranks = static_cast<std::size_t>(replicas) * static_cast<std::size_t>(devices);
  ASSERT_EQ(run.ranks().size(), ranks);
  run.stop(ranks - 1);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSlowness));
  kill(run.ranks().back(), SIGKILL);
  const Ending ending = run.end();
  EXPECT_GT(ending.exit_code, 0);
  EXPECT_LT(ending.seconds, kPatience);
  EXPECT_TRUE(is_named(ending, ranks - 1, collectives_of(shard, devices - 1))) << ending.err;
  EXPECT_EQ(ending.complaints().size(), ranks - 1) << ending.err;
  const auto lines = lines_of(ending.out);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& line) { return line.ends_with(" ended with 3"); }))
      << ending.out;
  EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
}

TEST(FailingReplica, ThatIsKilledIsNamedWithTheCollective) {
  expect_named_when_killed(2, 1, "off");
  expect_named_when_killed(2, 1, "weights");
  expect_named_when_killed(2, 2, "optimizer");
}

void expect_named_when_stuck(int replicas, int devices, const std::string& shard) {
  SCOPED_TRACE(std::to_string(replicas) + " replicas of " + std::to_string(devices) + " devices, " + shard);
  constexpr Seconds kTimeout = 2;
  ReplicatedRun run(replicas, devices, {"--parallel.shard", shard, "--train.timeout", "2"});
  const std::size_t ranks = static_cast<std::size_t>(replicas) * static_cast<std::size_t>(devices);
  ASSERT_EQ(run.ranks().size(), ranks);
  run.stop(ranks - 1);
  const Ending ending = run.end();
  EXPECT_EQ(ending.exit_code, 3) << ending.err;
  EXPECT_LT(ending.seconds, kTimeout + kPatience);
  EXPECT_TRUE(is_named(ending, ranks - 1, collectives_of(shard, devices - 1))) << ending.err;
  EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
}

TEST(FailingReplica, ThatIsStuckIsNamedWithTheCollectiveWhenTheTimeIsUp) {
  expect_named_when_stuck(2, 1, "off");
  expect_named_when_stuck(2, 1, "weights");
  expect_named_when_stuck(2, 2, "optimizer");
}

}  // namespace
}  // namespace penstock::testing
