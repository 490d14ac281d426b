// SPDX-License-Identifier: Apache-2.0
// A supervised run: killed ranks and a killed launcher cost no bit, what cannot help is not tried again.
#include <gtest/gtest.h>

#include <filesystem>

#include "comm/launcher.h"
#include "runs/resumed_run.h"

namespace penstock::testing {
namespace {

class SupervisedRun : public ResumedRun {
 protected:
  Arguments supervised(const Arguments& command) const {
    Arguments all{PENSTOCK_PROGRAM, "supervise", "--"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }

  // Supervises a script that begins a run of two threads, "$@". `first`: what its first starts do, by their
  // number; `later`: what the others do.
  Ending launched(const std::string& first, const std::string& later, const Arguments& run) {
    scratch_.write("launch",
                   "cd \"$(dirname \"$0\")\"; echo start >> starts\n"
                   "case $(wc -l < starts) in\n" +
                       first + "esac\n" + later);
    return run_program(supervised(with({"sh", scratch_ / "launch"}, with_threads(2, run))));
  }

  nlohmann::json attempts_of(const std::string& directory) const {
    return nlohmann::json::parse(scratch_.read(directory + "/attempts.json"));
  }

  void wait_for_steps(const std::string& directory, std::size_t steps) const {
    const Seconds until = seconds_now() + 60 * kSlowness;
    while (lines_of(scratch_.read(directory + "/metrics.jsonl")).size() < steps && seconds_now() < until)
      sleep_a_little();
  }

  // The mpirun under the supervisor that has begun a step after `steps`, and its ranks.
  std::vector<int> launcher_and_ranks(int supervisor, const std::string& directory, std::size_t steps) const {
    const Seconds until = seconds_now() + 60 * kSlowness;
    while (seconds_now() < until) {
      sleep_a_little();
      if (lines_of(scratch_.read(directory + "/metrics.jsonl")).size() <= steps) continue;
      for (const int launcher : children_of(supervisor)) {
        std::vector<int> found = ranks_of(launcher);
        if (found.empty()) continue;
        found.insert(found.begin(), launcher);
        return found;
      }
    }
    return {};
  }
};

TEST_F(SupervisedRun, GoesOnToTheSameBitsWhenRanksAndLauncherAreKilled) {
  const Arguments settings{"--train.steps", "90", "--train.checkpoint_every", "10"};
  train_well("whole", settings, 2, true);
  RunningProgram program(supervised(with_mpirun(2, arguments("parts", settings))));
  const auto first = launcher_and_ranks(program.process(), "parts", 15);
  ASSERT_EQ(first.size(), 3);
  kill(first[2], SIGKILL);
  EXPECT_EQ(left_running(first), std::vector<int>{});
  const auto second = launcher_and_ranks(program.process(), "parts", 35);
  ASSERT_EQ(second.size(), 3);
  kill(second[1], SIGSTOP);  // holds the directory when its launcher is gone
  kill(second[0], SIGKILL);
  const Ending ending = program.wait(240);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  expect_same("parts", "whole");
  EXPECT_EQ(left_running(second), std::vector<int>{});

  const auto told = attempts_of("parts");
  ASSERT_EQ(told["attempts"].size(), 3) << told;
  EXPECT_EQ(told["attempts"][0]["resumed_from_step"], 0);
  const auto reason = told["attempts"][0]["reason"].get<std::string>();
  EXPECT_TRUE(reason.starts_with("rank 0: ")) << told;
  EXPECT_NE(reason.find("rank 1 (p1, host "), std::string::npos) << told;
  EXPECT_TRUE(reason.ends_with(" (p0, host " + comm::host_name() + ")")) << told;
  EXPECT_EQ(told["attempts"][1]["exit_code"], 128 + SIGKILL);
  EXPECT_EQ(told["attempts"][2]["last_step"], 90);
  EXPECT_EQ(told["attempts"][2]["resumed_from_step"].get<int>() % 10, 0);
  double steps = 0;
  for (const std::string& line : lines_of(scratch_.read("parts/metrics.jsonl")))
    steps += nlohmann::json::parse(line)["step_s"].get<double>();
  EXPECT_NEAR(told["time"]["productive_s"].get<double>(), steps, 1e-6);
  EXPECT_GT(told["time"]["recomputed_s"].get<double>(), 0);
  EXPECT_EQ(told["recoveries"].size(), 2) << told;
  const std::string page = scratch_.read("parts/report.html");
  for (const char* part : {"steps that a later attempt did again", "\"Recoveries\""})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  const std::string line = "attempt 1 ended after step " + told["attempts"][0]["last_step"].dump() + ": " +
                           reason + "; starts again in ";
  EXPECT_NE(ending.err.find("penstock: " + line), std::string::npos) << ending.err;
  for (const char* part : {"recomputed", "recovery  noticed in "})
    EXPECT_NE(ending.out.find(part), std::string::npos) << ending.out;
}

TEST_F(SupervisedRun, GivesUpWhereTheSameStepFailsForTheSameReason) {
  const Ending ending = run_program(supervised(with_threads(
      2, arguments("bad", {"--train.lr", "1e30", "--train.steps", "40", "--train.warmup_steps", "0"}))));
  EXPECT_EQ(ending.exit_code, 3);
  EXPECT_NE(ending.complaints().back().find("has failed twice for the same reason: gives up"),
            std::string::npos)
      << ending.err;
  EXPECT_EQ(attempts_of("bad")["attempts"].size(), 2);
}

TEST_F(SupervisedRun, RefusesWhatNoAttemptCanChange) {
  const auto refused = [&](const Arguments& command, const std::string& part) {
    const Ending ending = run_program(command);
    EXPECT_EQ(ending.exit_code, 2) << ending.err;
    EXPECT_NE(ending.err.find(part), std::string::npos) << ending.err;
  };
  refused(supervised(with_threads(2, arguments("x", {"--train.steps", "-1"}))), "train.steps");
  refused(supervised(with_threads(2, arguments("x", {"--data.text", "none.txt"}))), "none.txt");
  refused(supervised({"true"}), "does not train a run file");
  refused(supervised({"no-such-program", "train", scratch_ / "run.toml"}), "cannot be started");
  refused({PENSTOCK_PROGRAM, "supervise"}, "command");
}

// As where a dying rank still holds the directory: the second attempt is refused, the third one goes on.
TEST_F(SupervisedRun, OutlivesARefusalOfARunThatHasBegun) {
  const Ending ending = launched(
      "  1) \"$@\" --train.steps 4; exit 3 ;;\n"
      "  2) echo 'penstock: run is in use by another run' >&2; exit 2 ;;\n",
      "exec \"$@\" --train.steps 8\n", arguments("run", {}));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  const auto told = attempts_of("run")["attempts"];
  ASSERT_EQ(told.size(), 3) << told;
  EXPECT_EQ(told[1]["reason"], "run is in use by another run");
  EXPECT_FALSE(told[1].contains("resumed_from_step")) << told;
  EXPECT_EQ(told[2]["resumed_from_step"], 4);
  EXPECT_EQ(told[2]["last_step"], 8);
}

// Its remarks at the start, and a wrapper that turns the signal into an exit code of its own.
TEST_F(SupervisedRun, IsNotEndedByItsRemarks) {
  const Ending ending = launched(
      "  1) \"$@\" --train.steps 4; exit 3 ;;\n"
      "  2) echo 'penstock: note: train.lr = 1 where the run had 2' >&2; exit 1 ;;\n"
      "  3) echo 'penstock: another remark' >&2; kill -9 $$ ;;\n",
      "exec \"$@\" --train.steps 8\n", arguments("run", {}));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  const auto told = attempts_of("run")["attempts"];
  ASSERT_EQ(told.size(), 4) << told;
  EXPECT_EQ(told[1]["reason"], "exit code 1");
  EXPECT_EQ(told[2]["reason"], "ended by signal 9");
}

// As after a lost node: the attempts of the run that holds the lock stay, whoever they are of.
TEST_F(SupervisedRun, WaitsForTheLockOfARunThatHasSteps) {
  ASSERT_EQ(run_program(supervised(with_threads(2, arguments("run", {"--train.steps", "4"})))).exit_code, 0);
  const std::string before = scratch_.read("run/attempts.json");
  const Ending ending = launched("  1) exec 9>> run/lock; flock 9; \"$@\"; exit $? ;;\n",
                                 "cp run/attempts.json then\n"
                                 "exec \"$@\"\n",
                                 arguments("run", {"--train.steps", "8"}));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.err.find("is in use by another run; name another directory, or wait; starts again in "),
            std::string::npos)
      << ending.err;
  EXPECT_EQ(scratch_.read("then"), before);
  const auto told = attempts_of("run")["attempts"];
  ASSERT_EQ(told.size(), 3) << told;
  EXPECT_EQ(told[1]["exit_code"], 2);
  EXPECT_EQ(told[2]["resumed_from_step"], 4);
}

// The command changes its directory, so no step of it is seen from here.
TEST_F(SupervisedRun, GoesOnWhereItsDirectoryIsNotInSight) {
  const Ending ending = launched("  1) \"$@\" --train.steps 4; kill -9 $$ ;;\n",
                                 "exec \"$@\" --train.steps 8\n", arguments("", {"--output.dir", "unseen"}));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.err.find("already holds a run"), std::string::npos) << ending.err;
  EXPECT_EQ(lines_of(scratch_.read("unseen/metrics.jsonl")).size(), 8);
  EXPECT_EQ(lines_of(scratch_.read("starts")).size(), 3);
}

TEST_F(SupervisedRun, IsSeenInTheDirectoryThatMpirunIsAskedFor) {
  Arguments words = arguments("", {"--output.dir", "there", "--train.steps", "2"});
  words[1] = "run.toml";
  words = with_mpirun(2, words);
  words.insert(words.begin() + 1, {"--wdir", scratch_.path()});
  const Ending ending = run_program(supervised(words));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_EQ(attempts_of("there")["attempts"][0]["last_step"], 2);
}

TEST_F(SupervisedRun, TellsARefusalOnce) {
  scratch_.write("run.txt", small_run_file(scratch_));  // whatever its name
  Arguments words = arguments("x", {});
  words[1] = scratch_ / "run.txt";
  const Ending ending = run_program(supervised(with_mpirun(3, words)));
  EXPECT_EQ(ending.exit_code, 2) << ending.err;
  ASSERT_EQ(ending.complaints().size(), 1) << ending.err;
  EXPECT_NE(ending.complaints()[0].find("3 ranks"), std::string::npos) << ending.err;
}

// Of both supervisions, in the attempts and in the summary.
TEST_F(SupervisedRun, KeepsTheAttemptsOfTheSupervisionBefore) {
  const auto steps = [&](const char* count) {
    const Ending ending =
        run_program(supervised(with_threads(2, arguments("run", {"--train.steps", count}))));
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
  };
  steps("4");
  const auto before = attempts_of("run");
  steps("8");
  steps("8");  // all are done
  const auto told = attempts_of("run");
  ASSERT_EQ(told["attempts"].size(), 3) << told;
  EXPECT_EQ(told["attempts"][0], before["attempts"][0]);
  EXPECT_EQ(told["attempts"][1]["resumed_from_step"], 4);
  EXPECT_EQ(told["attempts"][1]["last_step"], 8);
  EXPECT_GT(told["time"]["productive_s"].get<double>(), before["time"]["productive_s"].get<double>());
  const auto summary = nlohmann::json::parse(scratch_.read("run/summary.json"));
  EXPECT_EQ(summary["attempts"], 3);
  EXPECT_EQ(summary["time"], told["time"]);
}

// Its page is of the end before, whose other records are gone.
TEST_F(SupervisedRun, IsStoppedAfterAnEarlierEndWithoutAComplaint) {
  const auto steps = [&](const char* count) {
    return run_program(supervised(with_threads(2, arguments("run", {"--train.steps", count}))));
  };
  ASSERT_EQ(steps("4").exit_code, 0);
  scratch_.write("run/stop", "");
  const Ending ending = steps("8");
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_EQ(ending.err.find("not recorded"), std::string::npos) << ending.err;
  EXPECT_EQ(attempts_of("run")["attempts"].size(), 2);
}

TEST_F(SupervisedRun, KeepsADamagedFileOfAttempts) {
  const auto steps = [&](const char* count) {
    return run_program(supervised(with_threads(2, arguments("run", {"--train.steps", count}))));
  };
  ASSERT_EQ(steps("4").exit_code, 0);
  const std::string whole = scratch_.read("run/attempts.json");
  const std::string damaged = whole.substr(0, whole.rfind('}'));
  scratch_.write("run/attempts.json", damaged);
  const Ending ending = steps("8");
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.err.find("attempts.json is damaged"), std::string::npos) << ending.err;
  EXPECT_EQ(scratch_.read("run/attempts.json.damaged"), damaged);
  EXPECT_EQ(attempts_of("run")["attempts"].size(), 1);
}

TEST_F(SupervisedRun, GoesOnFromItsCheckpointsWhereTheMetricsAreGoneOrEmpty) {
  const auto steps = [&](int count) {
    const Ending ending =
        run_program(supervised(with_threads(2, arguments("run", {"--train.steps", std::to_string(count)}))));
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    const auto attempts = attempts_of("run")["attempts"];
    ASSERT_EQ(attempts.size(), static_cast<std::size_t>(count / 2)) << attempts;
    EXPECT_EQ(attempts.back()["resumed_from_step"], count - 2);
  };
  steps(2);
  std::filesystem::remove(scratch_ / "run/metrics.jsonl");
  steps(4);
  scratch_.write("run/metrics.jsonl", "");
  steps(6);
}

// There is no checkpoint yet, and a lost disk write has emptied metrics.jsonl.
TEST_F(SupervisedRun, GoesOnFromItsCopiesInMemoryWhereTheMetricsAreEmpty) {
  const Arguments words =
      with_threads(2, arguments("run", {"--train.buddy_every", "1", "--train.buddy_dir", scratch_ / "memory",
                                        "--train.checkpoint_every", "500000", "--train.steps", "1000000"}));
  {
    RunningProgram program(words);
    wait_for_steps("run", 3);
    kill(program.process(), SIGKILL);
    program.wait(60);
  }
  scratch_.write("run/metrics.jsonl", "");
  scratch_.write("run/stop", "");  // after its first step
  const Ending ending = run_program(supervised(words));
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_GT(attempts_of("run")["attempts"][0]["resumed_from_step"], 0) << ending.err;
}

// Ctrl-C of a script's or a job's process group reaches the supervisor and its command.
TEST_F(SupervisedRun, LeavesACheckpointWhereItsGroupIsInterrupted) {
  RunningProgram program(supervised(with_threads(2, arguments("run", {"--train.steps", "1000000"}))));
  wait_for_steps("run", 3);
  const std::vector<int> commands = children_of(program.process());
  ASSERT_EQ(commands.size(), 1);
  kill(commands[0], SIGINT);
  kill(program.process(), SIGINT);
  const Ending ending = program.wait(60);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("as asked; checkpoint "), std::string::npos) << ending.out;
}

// The user's request to end goes to the run, which leaves a checkpoint, and ends the supervision.
TEST_F(SupervisedRun, PassesOnARequestToEnd) {
  RunningProgram program(supervised(with_threads(2, arguments("run", {"--train.steps", "1000000"}))));
  wait_for_steps("run", 3);
  kill(program.process(), SIGTERM);
  const Ending ending = program.wait(60);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_EQ(attempts_of("run")["attempts"].size(), 1);
  EXPECT_NE(ending.out.find("stopped"), std::string::npos) << ending.out;
}

}  // namespace
}  // namespace penstock::testing
