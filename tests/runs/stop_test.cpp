// SPDX-License-Identifier: Apache-2.0
// Runs that are asked to stop: a checkpoint after the step, a line, exit code 0; and they can be gone on
// with.
#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "cli/run_program.h"
#include "cli/train/stop_signals.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManySteps = "1000000";

// A run that would go on for ever, past its first steps.
class StoppedRun {
 public:
  explicit StoppedRun(bool mpirun, const Arguments& settings = {}) {
    scratch_.write("run.toml", small_run_file(scratch_));
    Arguments arguments{"train",    scratch_ / "run.toml", "--train.steps",
                        kManySteps, "--train.lr_schedule", "constant"};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    program_.emplace(mpirun ? with_mpirun(2, arguments) : with_threads(2, arguments));
    const Seconds until = seconds_now() + 60;
    while (steps() < 3 && seconds_now() < until) sleep_a_little();
  }

  int process() const { return program_->process(); }
  std::size_t steps() const { return lines_of(scratch_.read("run/metrics.jsonl")).size(); }
  const Scratch& scratch() const { return scratch_; }

  Ending end() { return program_->wait(60); }

  void expect_good_end() {
    const Ending ending = end();
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    const std::string line = "stopped   after step " + std::to_string(steps()) + " as asked; checkpoint ";
    EXPECT_NE(ending.out.find(line), std::string::npos) << ending.out;
    EXPECT_TRUE(ending.complaints().empty()) << ending.err;
    EXPECT_FALSE(fs::exists(scratch_ / "run/stop")) << "a resumed run would stop again";
  }

  // Going on by a step ends with the bits of a run that never stopped.
  void expect_good_resume() {
    const std::string last = std::to_string(steps() + 1);
    const auto train = [&](const Arguments& words) {
      Arguments all{"train", scratch_ / "run.toml", "--train.lr_schedule", "constant", "--train.steps", last};
      all.insert(all.end(), words.begin(), words.end());
      const Ending ending = run_program(with_threads(2, all));
      EXPECT_EQ(ending.exit_code, 0) << ending.err;
    };
    train({"--resume"});
    train({"--output.dir", scratch_ / "whole"});
    EXPECT_EQ(left_in(scratch_, "run").weights, left_in(scratch_, "whole").weights);
  }

 private:
  Scratch scratch_;
  std::optional<RunningProgram> program_;
};

TEST(Stop, ByASignalInOneProcess) {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
    SCOPED_TRACE(strsignal(number));
    StoppedRun run(false);
    kill(run.process(), number);
    run.expect_good_end();
    if (number == SIGTERM) run.expect_good_resume();
  }
}

TEST(Stop, ByASignalThatMpirunForwards) {
  StoppedRun run(true);
  kill(run.process(), SIGUSR1);
  run.expect_good_end();
  run.expect_good_resume();
}

// Whether the signal would wait.
bool is_held(int process, int number) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  const std::string key = "SigBlk:";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return (std::stoull(line.substr(key.size()), nullptr, 16) >> (number - 1)) & 1;
  }
  return false;
}

// In the first milliseconds, when neither LibTorch nor the run file is there.
TEST(Stop, BySignalsBeforeTheRunCanAnswer) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  for (const auto& [number, says] :
       {std::pair{SIGUSR1, "stopped   after step "}, {SIGUSR2, "trained   5 steps"}}) {
    for (const bool supervised : {false, true}) {
      SCOPED_TRACE(std::string(strsignal(number)) + (supervised ? ", supervised" : ""));
      Arguments words = with_threads(2, {"train", scratch / "run.toml", "--output.dir", scratch / says});
      if (supervised) words.insert(words.begin(), {PENSTOCK_PROGRAM, "supervise", "--"});
      std::filesystem::remove_all(scratch / says);
      RunningProgram program(words);
      const Seconds until = seconds_now() + 10;
      while (!is_held(program.process(), number) && seconds_now() < until) usleep(100);
      kill(program.process(), number);
      const Ending ending = program.wait(60);
      if (supervised && number == SIGUSR1) {  // the command may be asked before it can answer
        EXPECT_TRUE(ending.exit_code == 0 || ending.exit_code == 3) << ending.err;
        continue;
      }
      EXPECT_EQ(ending.exit_code, 0) << ending.err;
      EXPECT_NE(ending.out.find(says), std::string::npos) << ending.out;
    }
  }
}

TEST(Stop, OfAllWhenOneRankIsAsked) {
  StoppedRun run(true);
  const auto ranks = ranks_of(run.process());
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[1], SIGUSR1);
  run.expect_good_end();
}

TEST(Stop, ByAFileInTheRunDirectory) {
  for (const bool mpirun : {false, true}) {
    StoppedRun run(mpirun, {"--train.checkpoint_every", "1"});
    run.scratch().write("run/stop", "");
    run.expect_good_end();
  }
}

TEST(Stop, ByAFileThatAStartFindsIsTold) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  fs::create_directory(scratch / "run");
  scratch.write("run/stop", "");
  const Ending ending = run_program(with_threads(2, {"train", scratch / "run.toml"}));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("stopped   after step 1 as asked; checkpoint "), std::string::npos) << ending.out;
  ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
  EXPECT_NE(ending.complaints()[0].find("run/stop exists: the run stops after its first step; "),
            std::string::npos);
  EXPECT_FALSE(fs::exists(scratch / "run/stop"));
}

TEST(Stop, WithoutCheckpointsSaysSo) {
  StoppedRun run(false, {"--train.checkpoint_every", "0"});
  kill(run.process(), SIGTERM);
  const Ending ending = run.end();
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("no checkpoint of it, since train.checkpoint_every = 0"), std::string::npos);
  EXPECT_FALSE(fs::exists(run.scratch() / "run/checkpoints"));
}

// The signals in order, with the seconds before each; 0 if the process lives on.
void expect_end_at(int last, const std::vector<std::pair<int, Seconds>>& signals) {
  EXPECT_EXIT(
      {
        const cli::StopSignals taken({SIGTERM, SIGINT, SIGUSR1});
        if (cli::StopSignals::asked()) _exit(1);
        for (const auto& [number, after] : signals) {
          usleep(static_cast<useconds_t>(1e6 * after));
          raise(number);
          if (!cli::StopSignals::asked()) _exit(2);
        }
        _exit(0);
      },
      ::testing::ExitedWithCode(last == 0 ? 0 : 128 + last), "");
}

TEST(StopSignals, AskFirstAndEndWhereTheUserInsists) {
  expect_end_at(SIGINT, {{SIGINT, 0}, {SIGINT, 0.5}});
  expect_end_at(SIGINT, {{SIGTERM, 0}, {SIGINT, 0.5}});
  expect_end_at(SIGTERM, {{SIGTERM, 0}, {SIGTERM, 2.1}});
}

// A process group's supervisor forwards what the run got too; Slurm warns by SIGUSR1 before it sends SIGTERM.
TEST(StopSignals, AskOnceWhereTheyComeTwice) {
  expect_end_at(0, {{SIGTERM, 0}, {SIGTERM, 0.1}, {SIGTERM, 0.1}});
  expect_end_at(0, {{SIGINT, 0}, {SIGINT, 0.1}});
  expect_end_at(0, {{SIGUSR1, 0}, {SIGUSR1, 0.1}, {SIGTERM, 2.1}, {SIGUSR1, 0}});
}

// As after Ctrl-C, which also ends what a run's output was piped into.
TEST(StopSignals, LeaveARunToItsEndWhereNobodyReads) {
  const cli::StopSignals signals({SIGTERM});
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(StopSignals, AreGivenBack) {
  EXPECT_EXIT(
      {
        { const cli::StopSignals signals({SIGTERM}); }
        raise(SIGTERM);
        _exit(3);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace penstock::testing
