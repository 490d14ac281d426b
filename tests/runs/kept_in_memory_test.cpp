// SPDX-License-Identifier: Apache-2.0
// Runs that keep copies of their state in the host's memory: a killed rank costs no step, and no checkpoint
// is read. A rank that is slow is named.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "files/mapped_file.h"
#include "runs/endless_run.h"
#include "runs/resumed_run.h"

namespace penstock::testing {
namespace {

class KeptInMemory : public ResumedRun {
 protected:
  Arguments copying(const std::string& every) const {
    return {"--train.buddy_every", every, "--train.buddy_dir", scratch_ / "memory", "--train.steps", "60"};
  }

  // Runs until a step after `steps`, and is killed.
  void kill_after(std::size_t steps, const Arguments& settings, bool mpirun) {
    const Arguments all = arguments("parts", settings);
    RunningProgram program(mpirun ? with_mpirun(2, all) : with_threads(2, all));
    const Seconds until = seconds_now() + 60 * kSlowness;
    while (lines_of(scratch_.read("parts/metrics.jsonl")).size() <= steps && seconds_now() < until)
      sleep_a_little();
    const std::vector<int> ranks = mpirun ? ranks_of(program.process()) : std::vector{program.process()};
    kill(ranks.back(), SIGKILL);
    EXPECT_NE(program.wait(60).exit_code, 0);
    done_ = lines_of(scratch_.read("parts/metrics.jsonl")).size();
  }

  // Goes on after that, with other settings too; what the last start said.
  Ending killed_after(std::size_t steps, const Arguments& settings, bool mpirun, const Arguments& then = {}) {
    kill_after(steps, settings, mpirun);
    Arguments resumed = with(settings, then);
    resumed.emplace_back("--resume");
    return train("parts", resumed, 2, mpirun);
  }

  std::size_t done_ = 0;  // steps, when it was killed
};

// Copies are found also by a start that makes none.
TEST_F(KeptInMemory, NoStepIsRepeatedWhenEachIsCopied) {
  train_well("whole", {"--train.steps", "60"});
  for (const bool mpirun : {false, true}) {
    SCOPED_TRACE(mpirun);
    Arguments settings = copying("1");
    settings.insert(settings.end(), {"--train.checkpoint_every", "0"});
    const Ending ending =
        killed_after(12, settings, mpirun, mpirun ? Arguments{} : Arguments{"--train.buddy_every", "0"});
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    const auto resumes_after = [&](std::size_t step) {
      return ending.out.find("resumes   after step " + std::to_string(step) + ", from memory of") !=
             std::string::npos;
    };
    EXPECT_TRUE(resumes_after(done_) ||
                resumes_after(done_ + 1))  // killed between a copy and its step's line
        << done_ << " steps were done\n"
        << ending.out;
    EXPECT_NE(ending.out.find("(rm -r " + scratch_ / "memory/penstock-"), std::string::npos) << ending.out;
    expect_same("parts", "whole");
    EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "memory")) << "copies stay after the end";
    std::filesystem::remove_all(scratch_ / "parts");
  }
}

// A disk that is full from a moment on: the copy of the step whose line cannot be written is there. The run
// may be asked to end with that step.
TEST_F(KeptInMemory, HaveTheLineThatAFullDiskDidNotTake) {
  Arguments settings = copying("1");
  settings.insert(settings.end(), {"--train.checkpoint_every", "1000"});
  RunningProgram program(with_threads(2, arguments("parts", settings)));
  const auto steps = [&] { return lines_of(scratch_.read("parts/metrics.jsonl")).size(); };
  const Seconds until = seconds_now() + 60 * kSlowness;
  while (steps() <= 12 && seconds_now() < until) sleep_a_little();
  fill_disk_of(program.process());
  EXPECT_EQ(program.wait(60).exit_code, 3);
  const std::string last = std::to_string(steps() + 1);
  settings.insert(settings.end(), {"--train.steps", last});
  train_well("whole", {"--train.steps", last});
  settings.emplace_back("--resume");
  const Ending ending = train("parts", settings);
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("resumes   after step " + last + ", from memory of"), std::string::npos)
      << ending.out;
  expect_same("parts", "whole");
  const std::string number = std::string(6 - last.size(), '0') + last;
  EXPECT_TRUE(std::filesystem::exists(scratch_ / ("parts/checkpoints/step-" + number)))
      << "none of the last step";
}

TEST_F(KeptInMemory, NoMoreStepsAreRepeatedThanLieBetweenCopies) {
  train_well("whole", {"--train.steps", "60"});
  const Ending ending = killed_after(20, copying("8"), true);
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  expect_same("parts", "whole");
  const auto line = ending.out.find("resumes   after step ");
  ASSERT_NE(line, std::string::npos) << ending.out;
  EXPECT_GE(std::stoul(ending.out.substr(line + 21)) + 8, done_);
}

// A checkpoint on disk that is newer than every copy is taken; so is one where the memory is lost.
TEST_F(KeptInMemory, GoesOnFromDiskWithoutCopies) {
  train_well("whole", {"--train.steps", "60"});
  Arguments settings = copying("3");
  const Arguments all = arguments("parts", settings);
  {
    RunningProgram program(with_mpirun(2, all));
    while (lines_of(scratch_.read("parts/metrics.jsonl")).size() <= 9) sleep_a_little();
    kill(ranks_of(program.process()).front(), SIGKILL);
    program.wait(60);
  }
  std::filesystem::remove_all(scratch_ / "memory");
  settings.emplace_back("--resume");
  const Ending ending = train("parts", settings, 2, true);
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("/checkpoints/step-0000"), std::string::npos) << ending.out;
  expect_same("parts", "whole");
}

// What an earlier run of the same directory left in memory is not taken for this one's.
TEST_F(KeptInMemory, OfAnOlderRunAreForgotten) {
  kill_after(20, copying("1"), false);
  EXPECT_FALSE(std::filesystem::is_empty(scratch_ / "memory"));
  std::filesystem::remove_all(scratch_ / "parts");
  train_well("parts", {"--train.buddy_dir", scratch_ / "memory", "--train.steps", "2"});
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "memory"));
}

// Nor are they where another run's directory takes its place.
TEST_F(KeptInMemory, OfAnotherRunAreNotTakenUp) {
  kill_after(10, copying("1"), false);
  ASSERT_FALSE(std::filesystem::is_empty(scratch_ / "memory"));
  std::filesystem::remove_all(scratch_ / "parts");
  train_well("other", {"--train.steps", "4"});
  std::filesystem::rename(scratch_ / "other", scratch_ / "parts");
  Arguments settings = copying("1");
  settings.emplace_back("--resume");
  const Ending ending = train("parts", settings);
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("resumes   after step 4, from " + scratch_ / "parts/checkpoints/"),
            std::string::npos)
      << ending.out;
}

// Though no checkpoint says what the run was.
TEST_F(KeptInMemory, AreTakenUpByAnotherMesh) {
  Arguments settings = copying("1");
  settings.insert(settings.end(),
                  {"--train.checkpoint_every", "0", "--parallel.pp", "1", "--parallel.dp", "2"});
  train_well("whole", {"--train.steps", "60", "--parallel.pp", "1", "--parallel.dp", "2"});
  kill_after(12, settings, false);
  settings.insert(settings.end(), {"--parallel.dp", "1", "--resume"});
  const Ending ending = train("parts", settings, 1);
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("from memory of"), std::string::npos) << ending.out;
  expect_same("parts", "whole");
}

// They would lead back to steps that were replaced since.
TEST_F(KeptInMemory, AreForgottenWhereAStartWithoutThemHasMadeACheckpoint) {
  kill_after(10, copying("1"), false);
  ASSERT_FALSE(std::filesystem::is_empty(scratch_ / "memory"));
  Arguments settings = copying("0");
  settings.insert(settings.end(), {"--train.steps", "1000000", "--train.checkpoint_every", "1", "--resume"});
  RunningProgram program(with_threads(2, arguments("parts", settings)));
  const Seconds until = seconds_now() + 60 * kSlowness;
  while (!std::filesystem::is_empty(scratch_ / "memory") && seconds_now() < until) sleep_a_little();
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "memory"));
}

// The copies are newer than the checkpoint, but of steps that it has replaced.
TEST_F(KeptInMemory, OfAHostThatWasAbsentMeanwhileAreNotTakenUp) {
  Arguments settings = copying("1");
  settings.insert(settings.end(), {"--train.checkpoint_every", "0"});
  kill_after(10, settings, false);
  const std::string memory = scratch_ / "memory", absent = scratch_ / "absent";
  std::filesystem::rename(memory, absent);
  scratch_.write("parts/stop", "");  // after its first step
  Arguments without = copying("0");
  without.emplace_back("--resume");
  const Ending stopped = train("parts", without);
  ASSERT_EQ(stopped.exit_code, 0) << stopped.err;
  std::filesystem::remove_all(memory);
  std::filesystem::rename(absent, memory);
  settings.insert(settings.end(), {"--resume", "--dry-run"});
  const std::string resumed = train("parts", settings).out;
  EXPECT_NE(resumed.find("resumes   after step 1, from " + scratch_ / "parts/checkpoints/"),
            std::string::npos)
      << resumed;
}

// Nor are those that it kept while the others went on from a checkpoint and made copies again.
TEST_F(KeptInMemory, OfAHostThatWasAbsentAreNotNewerThanTheOthers) {
  Arguments settings = copying("1");
  settings.insert(settings.end(), {"--train.checkpoint_every", "5"});
  kill_after(12, settings, false);
  const std::string memory = scratch_ / "memory", absent = scratch_ / "absent";
  std::filesystem::rename(memory, absent);
  scratch_.write("parts/stop", "");  // after its first step
  settings.insert(settings.end(), {"--train.checkpoint_every", "0", "--resume"});
  const Ending others = train("parts", settings);
  ASSERT_EQ(others.exit_code, 0) << others.err;
  EXPECT_NE(others.out.find("/checkpoints/step-0000"), std::string::npos) << others.out;
  ASSERT_FALSE(std::filesystem::is_empty(memory));
  std::filesystem::copy(
      absent, memory,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  const std::string step = std::to_string(lines_of(scratch_.read("parts/metrics.jsonl")).size());
  settings.emplace_back("--dry-run");
  const std::string resumed = train("parts", settings).out;
  EXPECT_NE(resumed.find("resumes   after step " + step + ", from memory of"), std::string::npos) << resumed;
}

// A start that is at its end at once writes that checkpoint anew.
TEST_F(KeptInMemory, StandInForADamagedCheckpointOfTheSameStep) {
  Arguments settings = copying("200");
  settings.insert(settings.end(), {"--train.checkpoint_every", "200", "--train.steps", "390"});
  kill_after(300, settings, false);  // a hundred steps, in which the checkpoint is written
  const std::string file = "parts/checkpoints/step-000200/model-00001-of-00006.safetensors";
  std::string bytes = scratch_.read(file);
  ASSERT_FALSE(bytes.empty()) << "there is no checkpoint of step 200";
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  scratch_.write(file, bytes);
  settings.insert(settings.end(), {"--resume", "--train.steps"});
  for (const auto& [steps, source] :
       {std::pair{"200", "memory of"}, std::pair{"201", "parts/checkpoints/"}}) {
    Arguments all = settings;
    all.emplace_back(steps);
    const Ending ending = train("parts", all);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    const auto told = ending.out.find("resumes   after step 200, from ");
    ASSERT_NE(told, std::string::npos) << ending.out;
    EXPECT_NE(ending.out.find(source, told), std::string::npos) << ending.out;
    EXPECT_EQ(ending.err.find("step-000200 cannot be used: ") != std::string::npos, *source == 'm');
  }
}

// A dry run changes nothing.
TEST_F(KeptInMemory, AreLeftAloneByADryRun) {
  kill_after(10, copying("1"), false);
  std::filesystem::rename(scratch_ / "parts", scratch_ / "elsewhere");  // as on a host that does not see it
  Arguments settings = copying("1");
  settings.emplace_back("--dry-run");
  EXPECT_EQ(train("parts", settings).exit_code, 0);
  EXPECT_FALSE(std::filesystem::is_empty(scratch_ / "memory"));
}

// A start without copies leaves those of the one before alone until it has a checkpoint or has come to the
// run's end; so does one that finds that nothing is left to do.
TEST_F(KeptInMemory, AreForgottenAtAnEndWithoutThem) {
  kill_after(10, copying("1"), false);
  ASSERT_FALSE(std::filesystem::is_empty(scratch_ / "memory"));
  const std::string kept = std::filesystem::directory_iterator(scratch_ / "memory")->path();
  Arguments settings = copying("0");
  settings.insert(settings.end(), {"--train.steps", "30", "--resume"});
  train_well("parts", settings);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "memory"));

  for (const bool mpirun : {false, true}) {
    std::filesystem::create_directory(kept);
    std::ofstream(kept + "/of-an-earlier-start") << "copies";
    const Ending ending = train("parts", settings, 2, mpirun);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_TRUE(ending.out.starts_with("finished  all 30 steps")) << ending.out;
    EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "memory"));
  }
}

// Three quarters of the time rank 1 is stopped, as on a host that is busy with something else. On a busy
// machine the stops may all fall into few steps, which a comparison by medians passes over, so the test waits
// for one that does not.
TEST(SlowRank, IsNamedOnceAndInTheMetrics) {
  EndlessRun run(2, {"--train.timeout", "60", "--train.checkpoint_every", "1000000"});
  ASSERT_EQ(run.ranks().size(), 2);
  std::jthread slows([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const auto& [signal, milliseconds] : {std::pair(SIGSTOP, 6), std::pair(SIGCONT, 2)}) {
        kill(run.ranks()[1], signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      }
    }
  });
  run.wait_until([&] { return run.metrics().find(R"("slow_ranks":[1])") != std::string::npos; });
  run.wait_for_steps(run.steps() + 50);  // two more comparisons
  slows.request_stop();
  slows.join();
  std::ofstream(run.file("stop")).flush();
  const Ending ending = run.end();
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  const std::string named = "rank 1 (";
  EXPECT_NE(ending.err.find(named), std::string::npos) << ending.err;
  EXPECT_NE(ending.err.find("times as long as the median rank for equal work"), std::string::npos);
  EXPECT_EQ(ending.err.find(named), ending.err.rfind(named)) << "twice: " << ending.err;

  const Ending planned = program({"plan", "--from", run.file("")});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  const bool answers = planned.out.find("parallel.layers = [") != std::string::npos ||
                       planned.out.find("as good as whole layers can be") != std::string::npos;
  EXPECT_TRUE(answers) << planned.out;

  // A summary and a report are of runs that come to their end.
  const std::string last = std::to_string(run.steps() + 2);
  const Ending whole =
      run_program(with_threads(2, {"train", run.file("run.toml"), "--resume", "--train.steps", last}));
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  const auto text_of = [&](const char* name) { return files::read_text(run.file(name), 1 << 30); };
  EXPECT_EQ(nlohmann::json::parse(text_of("summary.json")).at("rank_times").size(), 2);
  EXPECT_NE(text_of("report.html").find("Time of each rank for equal work"), std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
