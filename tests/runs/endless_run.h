// SPDX-License-Identifier: Apache-2.0
// Runs under mpirun of which a test stops or kills a rank in the middle of a step.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "cli/run_program.h"

namespace penstock::testing {

// mpirun answers a rank's death with SIGTERM to the shell that started each other rank, and to that rank.
inline constexpr const char* kTellsItsEnd =
    "trap : TERM; \"$0\" \"$@\"; echo \"rank $OMPI_COMM_WORLD_RANK ended with $?\"";

// A run under mpirun that ends only when it fails.
class EndlessRun {
 public:
  EndlessRun(int ranks, const Arguments& settings) {
    scratch_.write("run.toml", small_run_file(scratch_));
    Arguments all = with_mpirun(
        ranks, {"train", scratch_ / "run.toml", "--train.steps", "1000000", "--train.checkpoint_every", "0"});
    all.insert(std::ranges::find(all, PENSTOCK_PROGRAM), {"sh", "-c", kTellsItsEnd});
    all.insert(all.end(), settings.begin(), settings.end());
    program_.emplace(all);
    wait_for_steps(2);
    for (const int shell : ranks_of(program_->process())) {
      for (const int process : children_of(shell)) ranks_.push_back(process);
    }
  }
  // A failed test leaves nothing running either.
  ~EndlessRun() {
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

  std::string file(const std::string& name) const { return scratch_ / "run/" + name; }
  std::string metrics() const { return scratch_.read("run/metrics.jsonl"); }
  std::size_t steps() const { return lines_of(metrics()).size(); }
  void wait_for_steps(std::size_t count) const {
    wait_until([&] { return steps() >= count; });
  }
  template <class Condition>
  void wait_until(const Condition& holds) const {
    const Seconds until = seconds_now() + 60 * kSlowness;
    while (!holds() && seconds_now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // How the run ends; `seconds` counts from here.
  Ending end() {
    const Seconds begin = seconds_now();
    Ending ending = program_->wait(3 * kPatience);
    ending.seconds = seconds_now() - begin;
    return ending;
  }

 private:
  Scratch scratch_;
  std::optional<RunningProgram> program_;
  std::vector<int> ranks_;
};

// Some line of the program names the rank and one of the collectives.
inline bool is_named(const Ending& ending, std::size_t rank, const Arguments& collectives) {
  const std::string culprit = "rank " + std::to_string(rank);
  return std::ranges::any_of(ending.complaints(), [&](const std::string& line) {
    const bool gone = line.find(culprit + " (") != std::string::npos &&
                      line.find(") failed: its process is gone") != std::string::npos;
    return gone || line.find("is " + culprit + " stuck?") != std::string::npos
               ? std::ranges::any_of(
                     collectives,
                     [&](const std::string& name) { return line.find(name) != std::string::npos; })
               : false;
  });
}

// That a rank's failure ended the run: every other rank complains, and some end by themselves, not by
// mpirun's signal.
inline void expect_ended_by_the_rest(const Ending& ending, const EndlessRun& run) {
  EXPECT_GT(ending.exit_code, 0);
  EXPECT_LT(ending.seconds, kPatience);
  EXPECT_EQ(ending.complaints().size(), run.ranks().size() - 1) << ending.err;
  const auto lines = lines_of(ending.out);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& line) { return line.ends_with(" ended with 3"); }))
      << ending.out;
  EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
}

}  // namespace penstock::testing
