// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "failure.h"
#include "scratch.h"

namespace penstock::train {
namespace {

std::string refusal(const std::string& path, RunStart start = RunStart::New) {
  return failure<InputError>([&] { RunDirectory(path, start); });
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(RunDirectory, IsMadeWithItsParents) {
  const Scratch scratch;
  const RunDirectory directory(scratch / "a/b/c", RunStart::New);
  EXPECT_TRUE(std::filesystem::is_directory(scratch / "a/b/c"));
  EXPECT_EQ(directory.metrics(), scratch / "a/b/c/metrics.jsonl");
}

TEST(RunDirectory, RefusesOneThatHoldsAnotherRunAndWritesNothing) {
  for (const char* trace : {"run.toml", "metrics.jsonl", "summary.json", "report.html", "checkpoints"}) {
    const Scratch scratch;
    scratch.write(trace, "x");
    const std::string refused = refusal(scratch.path());
    EXPECT_TRUE(says(refused, "already holds a run (" + std::string(trace) + " is there)")) << refused;
    EXPECT_FALSE(std::filesystem::exists(scratch / "lock"));
    EXPECT_EQ(scratch.read(trace), "x");
  }
}

TEST(RunDirectory, RefusesAFolderInPlaceOfAFileAndLeavesItAlone) {
  for (const char* name : {"summary.json", "weights.safetensors", "trace.json", "where", "lock"}) {
    const Scratch scratch;
    scratch.write("run.toml", "x");
    std::filesystem::create_directories(scratch / (std::string(name) + "/notes"));
    scratch.write(std::string(name) + "/notes/a", "precious");
    const std::string refused = refusal(scratch.path(), RunStart::Resume);
    EXPECT_TRUE(says(refused, "has a folder " + std::string(name))) << refused;
    EXPECT_EQ(scratch.read(std::string(name) + "/notes/a"), "precious");
  }
}

// As a run leaves it that was killed in its first step.
TEST(RunDirectory, TakesOverOneInWhichNoStepWasCompletedAndNoOther) {
  const auto left_behind = [](const Scratch& scratch, const char* metrics) {
    std::filesystem::create_directories(scratch / "checkpoints/step-000001.partial");
    scratch.write("lock", "");
    scratch.write("run.toml", "x");
    scratch.write("metrics.jsonl", metrics);
  };
  for (const char* metrics : {"", "{\"step\": 1, \"lo"}) {
    const Scratch scratch;
    left_behind(scratch, metrics);
    RunDirectory::check(scratch.path(), RunStart::New);
    EXPECT_EQ(scratch.read("run.toml"), "x") << "a check changes nothing";
    EXPECT_TRUE(RunDirectory(scratch.path(), RunStart::New).taken_over());
    for (const char* trace : {"metrics.jsonl", "checkpoints"})
      EXPECT_FALSE(std::filesystem::exists(scratch / trace)) << trace;
    EXPECT_TRUE(RunDirectory(scratch.path(), RunStart::New).taken_over())
        << "killed before it wrote a run file";
  }
  const Scratch with_step, with_checkpoint, with_file_of_a_user;
  left_behind(with_step, "{\"step\": 1}\n");
  left_behind(with_checkpoint, "");
  std::filesystem::create_directories(with_checkpoint / "checkpoints/step-000001");
  left_behind(with_file_of_a_user, "");
  std::filesystem::remove(with_file_of_a_user / "lock");
  for (const Scratch* scratch : {&with_step, &with_checkpoint, &with_file_of_a_user}) {
    EXPECT_TRUE(says(refusal(scratch->path()), "already holds a run (run.toml is there)"));
    EXPECT_EQ(scratch->read("run.toml"), "x");
  }
}

TEST(RunDirectory, ReplacesNoScheduleButARuns) {
  const Scratch scratch;
  const std::string own = scratch / "run/schedule.csv";
  const auto refused = [&](RunStart start, const std::string& schedule_file) {
    return failure<InputError>([&] { RunDirectory(scratch / "run", start, schedule_file); });
  };
  std::filesystem::create_directories(scratch / "run");
  scratch.write("my.csv", "0F0,0B0\n");
  scratch.write("run/schedule.csv", "0F0,0B0\n");
  EXPECT_TRUE(says(refused(RunStart::New, scratch / "my.csv"), "holds a schedule.csv that is not a run's"));
  EXPECT_EQ(refused(RunStart::New, ""), "");
  EXPECT_TRUE(says(refused(RunStart::New, own), "holds a schedule.csv that is not a run's"));
  EXPECT_EQ(kept_schedule(scratch / "run"), "");
  scratch.write("run/run.toml", "[schedule]\nfile = before\n");
  EXPECT_TRUE(says(refused(RunStart::Resume, scratch / "my.csv"), "run/run.toml")) << "it would tell";
  scratch.write("run/run.toml", "[schedule]\nfile = \"before/schedule.csv\"\n");
  EXPECT_EQ(kept_schedule(scratch / "run"), own);
  EXPECT_EQ(refused(RunStart::Resume, scratch / "my.csv"), "");
  EXPECT_TRUE(RunDirectory(scratch / "run", RunStart::New, own).taken_over());
  EXPECT_TRUE(std::filesystem::exists(own));
  scratch.write("run/run.toml", "[schedule]\nfile = \"before/schedule.csv\"\n");
  EXPECT_TRUE(RunDirectory(scratch / "run", RunStart::New, scratch / "my.csv").taken_over());
  EXPECT_FALSE(std::filesystem::exists(own));
}

TEST(RunDirectory, TakesOneThatHoldsOtherThings) {
  const Scratch scratch;
  scratch.write("notes.txt", "x");
  EXPECT_EQ(refusal(scratch.path()), "");
  EXPECT_EQ(refusal(scratch.path()), "") << "the lock of a run that never began is no run";
}

TEST(RunDirectory, LosesUnfinishedFilesOfKilledRunsAndNoOthers) {
  const Scratch scratch;
  for (const char* file : {"run.toml", "weights.safetensors.part-12", "summary.json.part-7",
                           "metrics.jsonl.part-7", "attempts.json.part-7", "mine.part-7"})
    scratch.write(file, "x");
  RunDirectory::check(scratch.path(), RunStart::Resume);
  EXPECT_TRUE(std::filesystem::exists(scratch / "summary.json.part-7")) << "a check changes nothing";
  const RunDirectory directory(scratch.path(), RunStart::Resume);
  EXPECT_FALSE(std::filesystem::exists(scratch / "weights.safetensors.part-12"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "summary.json.part-7"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "metrics.jsonl.part-7"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "attempts.json.part-7"))
      << "another process may be writing it";
  EXPECT_TRUE(std::filesystem::exists(scratch / "mine.part-7"));
}

TEST(RunDirectory, IsRefusedToAResumeThatCannotReadItsMetrics) {
  const Scratch scratch;
  scratch.write("run.toml", "x");
  std::filesystem::create_symlink(scratch / "none/m", scratch / "metrics.jsonl");
  const std::string refused =
      failure<InputError>([&] { RunDirectory::check(scratch.path(), RunStart::Resume); });
  EXPECT_EQ(refused, scratch / "metrics.jsonl" + ": cannot be opened: No such file or directory");
}

TEST(RunDirectory, IsLockedWhileItLives) {
  const Scratch scratch;
  {
    const RunDirectory first(scratch / "run", RunStart::New);
    EXPECT_TRUE(says(refusal(scratch / "run"), "is in use by another run"));
  }
  EXPECT_EQ(refusal(scratch / "run"), "");
}

TEST(RunDirectory, ResumesOnlyWhereARunIs) {
  const Scratch scratch;
  EXPECT_TRUE(says(refusal(scratch / "none", RunStart::Resume), "holds no run to resume"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "none"));
  scratch.write("run.toml", "x");
  EXPECT_EQ(refusal(scratch.path(), RunStart::Resume), "");
}

TEST(RunDirectory, RefusesWhatCannotBeWritten) {
  const Scratch scratch;
  scratch.write("file", "x");
  EXPECT_TRUE(says(refusal(scratch / "file"), "is not a directory")) << refusal(scratch / "file");
  EXPECT_TRUE(says(refusal(scratch / "file/run"), "cannot be made")) << refusal(scratch / "file/run");
  EXPECT_TRUE(says(refusal("/proc/penstock"), "output.dir = \"/proc/penstock\" cannot be made"));
  EXPECT_TRUE(says(refusal("/proc"), "output.dir = \"/proc\" cannot be written")) << refusal("/proc");
  std::filesystem::create_directory(scratch / "piped");
  ASSERT_EQ(mkfifo((scratch / "piped/lock").c_str(), 0600), 0);
  EXPECT_TRUE(says(refusal(scratch / "piped"), "cannot be written: lock")) << refusal(scratch / "piped");
}

TEST(RunDirectory, LosesQuestionsToEarlierStarts) {
  const Scratch scratch;
  scratch.write("run.toml", "x");
  scratch.write("where", "");
  std::filesystem::create_directory(scratch / "positions");
  scratch.write("positions/7-0.json", "{}");
  const RunDirectory directory(scratch.path(), RunStart::Resume);
  for (const char* old : {"where", "positions"}) EXPECT_FALSE(std::filesystem::exists(scratch / old)) << old;
}

}  // namespace
}  // namespace penstock::train
