// SPDX-License-Identifier: Apache-2.0
// kill -9 at any moment, of one rank or of all: a whole checkpoint is there, nothing is left running, and the
// run goes on to the bits of one that was never disturbed. PENSTOCK_KILLS says how often (./dev soak).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/random.h"
#include "base/text.h"
#include "cli/run_program.h"
#include "train/checkpoint/directory.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 24;

std::int64_t kills_wanted() {
  const char* wanted = std::getenv("PENSTOCK_KILLS");
  return wanted ? parse_integer(wanted).value_or(10) : 10;
}

class KilledRun : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("run.toml", small_run_file(scratch_));
    ASSERT_EQ(run_program(with_threads(2, arguments("undisturbed", 2, false))).exit_code, 0);
  }

  Arguments arguments(const std::string& directory, int ranks, bool resume) const {
    Arguments all{"train",
                  scratch_ / "run.toml",
                  "--train.steps",
                  std::to_string(kSteps),
                  "--train.checkpoint_every",
                  "2",
                  "--train.keep_checkpoints",
                  "2",
                  "--parallel.pp",
                  std::to_string(ranks),
                  "--output.dir",
                  scratch_ / directory};
    if (resume) all.push_back("--resume");
    return all;
  }

  std::uint64_t drawn(std::uint64_t below) { return random_bits(kKey, draws_++) % below; }

  // Goes on with the run in the directory on other ranks, and kills what it can at a moment that is drawn.
  // The ending when it came to its end before, nothing when it was killed.
  std::optional<Ending> go_on_and_kill() {
    const bool resume = fs::exists(scratch_ / "killed/run.toml");
    const std::uint64_t launcher = drawn(4);
    const bool mpirun = launcher < 2;
    const int ranks = launcher == 3 ? 1 : 2;
    const Arguments words = arguments("killed", ranks, resume);
    RunningProgram program(mpirun ? with_mpirun(ranks, words) : with_threads(ranks, words));
    wait_for_moment(program);
    const std::vector<int> targets = mpirun ? ranks_of(program.process()) : std::vector{program.process()};
    const std::uint64_t victim = drawn(4);  // above 1: all
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (victim > 1 || victim % targets.size() == i) kill(targets[i], SIGKILL);
    }
    Ending ending = program.wait(60);
    EXPECT_EQ(left_running(targets), std::vector<int>{});
    if (ending.exit_code == 0) return ending;
    return std::nullopt;
  }

  // Some steps further on, or, now and then, while the program starts.
  void wait_for_moment(const RunningProgram& program) {
    const bool early = drawn(6) == 0;
    const Seconds until = seconds_now() + (early ? static_cast<double>(drawn(1000)) / 1000 : 60.0);
    const std::size_t lines = lines_of(scratch_.read("killed/metrics.jsonl")).size() + drawn(8);
    while (seconds_now() < until && is_running(program.process())) {
      if (!early && lines_of(scratch_.read("killed/metrics.jsonl")).size() > lines) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(drawn(20000)));
  }

  void expect_whole_checkpoint() const {
    const train::CheckpointDirectory checkpoints(scratch_ / "killed/checkpoints");
    for (const std::int64_t step : checkpoints.steps()) {
      train::verify_checkpoint(checkpoints.of_step(step), train::read_checkpoint_facts(checkpoints, step), 0,
                               1);
    }
    const std::size_t lines = lines_of(scratch_.read("killed/metrics.jsonl")).size();
    had_checkpoint_ = had_checkpoint_ || !checkpoints.steps().empty();
    EXPECT_EQ(checkpoints.steps().empty(), !had_checkpoint_) << lines << " steps were done";
  }

  void expect_undisturbed_result() const {
    const Left left = left_in(scratch_, "killed"), wanted = left_in(scratch_, "undisturbed");
    EXPECT_EQ(left.steps, wanted.steps);
    EXPECT_TRUE(left.weights == wanted.weights);
    const std::string last = "/checkpoints/step-0000" + std::to_string(kSteps);
    for (const auto& entry : fs::directory_iterator(scratch_ / ("undisturbed" + last))) {
      const std::string file = last + "/" + entry.path().filename().string();
      EXPECT_TRUE(scratch_.read("killed" + file) == scratch_.read("undisturbed" + file)) << file;
    }
  }

  static constexpr std::uint64_t kKey = 8;
  Scratch scratch_;
  std::uint64_t draws_ = 0;
  mutable bool had_checkpoint_ = false;
};

TEST_F(KilledRun, EndsWithTheBitsOfAnUndisturbedOne) {
  std::int64_t kills = 0, runs = 0;
  while (kills < kills_wanted() && !HasFailure()) {
    if (const auto ending = go_on_and_kill()) {
      expect_undisturbed_result();
      fs::remove_all(scratch_ / "killed");
      had_checkpoint_ = false;
      ++runs;
    } else {
      ++kills;
      expect_whole_checkpoint();
    }
  }
  if (fs::exists(scratch_ / "killed/run.toml")) {
    const Ending last = run_program(with_threads(2, arguments("killed", 2, true)));
    EXPECT_EQ(last.exit_code, 0) << last.err;
    expect_undisturbed_result();
    ++runs;
  }
  std::cout << kills << " kills, " << runs << " runs came to their end\n";
}

}  // namespace
}  // namespace penstock::testing
