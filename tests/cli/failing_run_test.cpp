// SPDX-License-Identifier: Apache-2.0
// What is left of a run whose rank fails, hangs or is killed: one clear line a rank, exit code 3, and nothing
// running.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/run_program.h"
#include "comm/launcher.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

// A run of two ranks under mpirun that goes on for ever, past its first steps.
class LongRun {
 public:
  explicit LongRun(const Arguments& settings = {}) {
    scratch_.write("run.toml", small_run_file(scratch_));
    Arguments arguments{"train", scratch_ / "run.toml", "--train.steps", "1000000"};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    program_.emplace(with_mpirun(2, arguments));
    const Seconds until = seconds_now() + 60;
    while (lines_of(scratch_.read("run/metrics.jsonl")).size() < 3 && seconds_now() < until) sleep_a_little();
    ranks_ = ranks_of(program_->process());
  }
  // A failed test leaves nothing running either.
  ~LongRun() {
    for (const int process : ranks_) {
      if (is_running(process) && rank_of(process) >= 0) kill(process, SIGKILL);
    }
  }

  const std::vector<int>& ranks() const { return ranks_; }

  // How the run ends after something was done to it; `seconds` counts from here.
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

// As the others call a rank of two devices.
std::string named(int rank) {
  const std::string number = std::to_string(rank);
  return "rank " + number + " (p" + number + ", host " + comm::host_name() + ")";
}

void expect_failure(const Ending& ending, const Arguments& says) {
  EXPECT_EQ(ending.exit_code, 3) << ending.err;
  auto lines = ending.complaints();
  std::ranges::sort(lines);
  ASSERT_EQ(lines.size(), says.size()) << ending.err;
  for (std::size_t i = 0; i < says.size(); ++i)
    EXPECT_NE(lines[i].find(says[i]), std::string::npos) << ending.err;
}

// The rank cannot write any more; it and the others name the file and the bytes that were wanted.
void expect_full_disk_named(std::size_t rank, const Arguments& says, const std::string& file) {
  LongRun run({"--train.checkpoint_every", "1"});
  ASSERT_EQ(run.ranks().size(), 2u);
  fill_disk_of(run.ranks()[rank]);
  const Ending ending = run.end();
  expect_failure(ending, says);
  for (const std::string& line : ending.complaints()) {
    EXPECT_NE(line.find(file + " cannot be written: "), std::string::npos) << line;
    EXPECT_NE(line.find(" bytes wanted: File too large"), std::string::npos) << line;
  }
  EXPECT_LT(ending.seconds, kPatience);
  EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
}

TEST(FailingRank, WhoseDiskIsFullIsNamedByTheOthers) {
  expect_full_disk_named(0, {"rank 0: ", "rank 1: " + named(0) + " failed: "}, "");
  expect_full_disk_named(1, {"rank 0: " + named(1) + " failed: ", "rank 1: "}, ".safetensors");
}

// With a checkpoint in every step, the rank stops in the midst of one or of a step.
void expect_named_when_time_is_up(const std::string& checkpoint_every, const std::string& exchange = "off") {
  LongRun run({"--train.timeout", "2", "--train.checkpoint_every", checkpoint_every, "--schedule.slices", "8",
               "--schedule.exchange", exchange});
  ASSERT_EQ(run.ranks().size(), 2u);
  kill(run.ranks()[1], SIGSTOP);
  const Ending ending = run.end();
  // mpirun wakes the stopped rank before it ends it; that rank may or may not come to repeat the message.
  Arguments says{"note: " + named(1) + " does not answer: ", "rank 0: "};
  if (ending.complaints().size() > says.size()) says.push_back("rank 1: " + named(0) + " failed: ");
  expect_failure(ending, says);
  EXPECT_EQ(ending.complaints().front().find(says[0]), 0) << ending.err;
  EXPECT_NE(ending.err.find("waited 2.00 s for the message "), std::string::npos) << ending.err;
  EXPECT_NE(ending.err.find("is rank 1 stuck?"), std::string::npos) << ending.err;
  EXPECT_LT(ending.seconds, kPatience);
  EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
}

TEST(FailingRank, ThatHangsIsNamedWhenTheTimeIsUp) {
  for (const char* checkpoint_every : {"0", "1"}) expect_named_when_time_is_up(checkpoint_every);
}

TEST(FailingRank, ThatHangsInContextExchangeIsNamedWhenTheTimeIsUp) {
  expect_named_when_time_is_up("0", "levelled");
}

void expect_nothing_after(std::size_t rank, int signal_number, const std::string& exchange = "off") {
  LongRun run({"--schedule.slices", "8", "--schedule.exchange", exchange});
  ASSERT_EQ(run.ranks().size(), 2u);
  kill(run.ranks()[rank], signal_number);
  const Ending ending = run.end();
  EXPECT_GT(ending.exit_code, 0);
  EXPECT_LT(ending.seconds, kPatience);
  EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
}

TEST(FailingRank, ThatIsKilledLeavesNothingRunning) {
  expect_nothing_after(0, SIGSEGV);
  expect_nothing_after(1, SIGKILL);
  expect_nothing_after(0, SIGKILL, "levelled");
}

// Runs the small file with the output directory prepared by the caller.
Ending run_in(const Scratch& scratch, bool mpirun, const Arguments& settings = {}) {
  scratch.write("run.toml", small_run_file(scratch));
  Arguments arguments{"train", scratch / "run.toml"};
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  return run_program(mpirun ? with_mpirun(2, arguments) : with_threads(2, arguments), 60);
}

TEST(FailingRank, BeforeTheFirstStepEndsAll) {
  for (const bool mpirun : {false, true}) {
    const Scratch scratch;
    fs::create_directory(scratch / "run");
    fs::create_symlink(scratch / "nowhere/metrics.jsonl", scratch / "run/metrics.jsonl");
    const std::string why = "metrics.jsonl cannot be written: No such file or directory";
    expect_failure(run_in(scratch, mpirun), mpirun ? Arguments{"rank 0: " + scratch / "run/" + why,
                                                               "rank 1: " + named(0) + " failed: "}
                                                   : Arguments{"rank 0: " + scratch / "run/" + why});
  }
}

TEST(FailingRank, AfterTheLastStepEndsAll) {
  for (const bool mpirun : {false, true}) {
    const Scratch scratch;
    scratch.write("run.toml", small_run_file(scratch));
    const Arguments arguments{"train", scratch / "run.toml", "--train.steps", "200"};
    RunningProgram program(mpirun ? with_mpirun(2, arguments) : with_threads(2, arguments));
    const Seconds until = seconds_now() + 60;
    while (!fs::exists(scratch / "run/metrics.jsonl") && seconds_now() < until) sleep_a_little();
    fs::create_directories(scratch / "run/weights.safetensors");
    const std::string why = "weights.safetensors cannot be renamed to its name: ";
    expect_failure(program.wait(60), mpirun ? Arguments{"rank 0: " + scratch / "run/" + why,
                                                        "rank 1: " + named(0) + " failed: "}
                                            : Arguments{"rank 0: " + scratch / "run/" + why});
  }
}

TEST(FailingRank, WithNumbersThatAreNotFiniteGivesUpAfterThreeSteps) {
  for (const bool mpirun : {false, true}) {
    const Scratch scratch;
    const Ending ending = run_in(scratch, mpirun, {"--train.lr", "1e38", "--train.warmup_steps", "0"});
    const std::string why = "three steps in a row had a loss or gradient that is not finite";
    expect_failure(ending, mpirun ? Arguments{"rank 0: " + why, "rank 1: " + why} : Arguments{": " + why});
    EXPECT_NE(ending.complaints()[0].find(", host " + comm::host_name() + ")"), std::string::npos);
    EXPECT_NE(ending.err.find("no checkpoint was written before"), std::string::npos) << ending.err;
    const Arguments lines = lines_of(scratch.read("run/metrics.jsonl"));
    ASSERT_FALSE(lines.empty());
    const auto last = nlohmann::json::parse(lines.back())["step"].get<int>();
    EXPECT_NE(ending.err.find("the last at step " + std::to_string(last)), std::string::npos)
        << ending.err << lines.back();
  }
}

// Its checkpoint is what --resume goes on from, as the message says; without one, the copy of the last step
// whose numbers were finite.
TEST(FailingRank, WithNumbersThatAreNotFiniteLeavesNoCopyOfASkippedStep) {
  for (const char* checkpoint_every : {"1", "0"}) {
    const Scratch scratch;
    Arguments settings{"--train.lr", "1e38", "--train.warmup_steps", "0"};
    settings.insert(settings.end(), {"--train.checkpoint_every", checkpoint_every});
    settings.insert(settings.end(), {"--train.buddy_every", "1", "--train.buddy_dir", scratch / "memory"});
    const Ending ending = run_in(scratch, false, settings);
    EXPECT_EQ(ending.exit_code, 3) << ending.err;
    const std::string last = "the last at step ";
    const auto at = ending.err.find(last);
    ASSERT_NE(at, std::string::npos) << ending.err;
    const std::string good = std::to_string(std::stol(ending.err.substr(at + last.size())) - 3);
    settings.insert(settings.end(), {"--resume", "--dry-run"});
    const std::string resumed = run_in(scratch, false, settings).out;
    const bool copied = std::string_view(checkpoint_every) == "0";
    EXPECT_EQ(fs::is_empty(scratch / "memory"), !copied);
    const std::string from = copied ? "memory of" : scratch / "run/checkpoints/step-";
    EXPECT_NE(resumed.find("resumes   after step " + good + ", from " + from), std::string::npos) << resumed;
  }
}

// Neither where the run is stopped or ends within the three steps: that checkpoint would lead to them again.
TEST(FailingRank, WithNumbersThatAreNotFiniteKeepsItsLastGoodCheckpoint) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto train = [&](const Arguments& more) {
    Arguments words{"train", scratch / "run.toml", "--train.lr", "1e38", "--train.warmup_steps", "0"};
    words.insert(words.end(), {"--train.checkpoint_every", "1", "--train.keep_checkpoints", "1"});
    words.insert(words.end(), {"--train.lr_schedule", "constant"});
    words.insert(words.end(), more.begin(), more.end());
    return run_program(with_threads(2, words));
  };
  const Ending gave_up = train({"--train.steps", "9", "--output.dir", scratch / "long"});
  const std::string last = "the last at step ";
  const auto at = gave_up.err.find(last);
  ASSERT_NE(at, std::string::npos) << gave_up.err;
  const std::int64_t good = std::stol(gave_up.err.substr(at + last.size())) - 3;
  const std::string steps = std::to_string(good + 2);
  const Ending ended = train({"--train.steps", steps, "--output.dir", scratch / "run"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(fs::exists(scratch / ("run/checkpoints/step-00000" + std::to_string(good))));
  EXPECT_FALSE(fs::exists(scratch / ("run/checkpoints/step-00000" + steps)));
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kTakesAddressSpace = true;
#else
constexpr bool kTakesAddressSpace = false;
#endif
constexpr const char* kTakesTooMuch =
    "the address sanitizer needs more address space than the test leaves; enable it with: ./dev test cli";

// With so much address space.
Ending run_within(Bytes limit, Arguments command) {
  const std::string limited = "ulimit -v " + std::to_string(limit / KiB) + "; exec \"$0\" \"$@\"";
  command.insert(command.begin(), {"sh", "-c", limited});
  return run_program(command, 60);
}

TEST(FailingRank, ThatRunsOutOfMemorySaysSoInOneLine) {
  if (kTakesAddressSpace) GTEST_SKIP() << kTakesTooMuch;
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending ending =
      run_within(6000000 * KiB, with_threads(2, {"train", scratch / "run.toml", "--model.hidden", "2048",
                                                 "--model.ffn", "1048576", "--train.memory_check", "off"}));
  EXPECT_EQ(ending.exit_code, 3) << ending.err;
  EXPECT_EQ(lines_of(ending.err).size(), 1u) << ending.err;
}

TEST(Memory, ThatIsRefusedIsNamedAsTheCause) {
  if (kTakesAddressSpace) GTEST_SKIP() << kTakesTooMuch;
  const Ending ending = run_within(200000 * KiB, {PENSTOCK_PROGRAM, "simulate", "--schedule", "slimpipe",
                                                  "-p", "64", "-n", "256", "-m", "64"});
  EXPECT_EQ(ending.exit_code, 3) << ending.err;
  EXPECT_EQ(
      ending.err,
      "penstock: out of memory: the system gives this process no more (a limit of ulimit -v, of a container, "
      "or of the host)\n");
}

}  // namespace
}  // namespace penstock::testing
