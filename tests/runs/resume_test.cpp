// SPDX-License-Identifier: Apache-2.0
// --resume: to the bits of a run that never stopped, past damaged checkpoints, and with clear words where it
// cannot go on.
#include <gtest/gtest.h>

#include "runs/resumed_run.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class Resume : public ResumedRun {
 protected:
  // Of a refused resume: exit code 2, one line that has the words.
  void expect_refusal(const std::string& directory, const Arguments& settings, const std::string& words) {
    Arguments all = settings;
    all.push_back("--resume");
    for (const bool mpirun : {false, true}) {
      const Ending ending = train(directory, all, 2, mpirun);
      EXPECT_EQ(ending.exit_code, 2) << ending.err;
      ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
      EXPECT_NE(ending.complaints()[0].find(words), std::string::npos) << ending.err;
    }
  }

  void damage(const std::string& file) {
    std::string bytes = scratch_.read(file);
    ASSERT_FALSE(bytes.empty());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    scratch_.write(file, bytes);
  }
};

TEST_F(Resume, EndsWithTheBitsOfARunThatNeverStopped) {
  train_well("whole", {"--train.steps", "9"});
  train_well("parted", {"--train.steps", "3"});
  train_well("parted", {"--train.steps", "5", "--resume", "--parallel.pp", "1"}, 1);
  train_well("parted", {"--train.steps", "7", "--resume", "--schedule.name", "seq1f1b"}, 2, true);
  train_well("parted", {"--train.steps", "9", "--resume", "--parallel.pp", "4"}, 4);
  expect_same("parted", "whole");
  EXPECT_EQ(lines_of(scratch_.read("parted/metrics.jsonl")).size(), 9u);
  const auto summary = nlohmann::json::parse(scratch_.read("parted/summary.json"));
  EXPECT_EQ(summary.at("steps"), 9);
  EXPECT_EQ(summary.at("resumed_from_step"), 7);
  EXPECT_EQ(summary.at("tokens"), 9 * 120);
  for (const char* command : {"report", "simulate"}) {
    EXPECT_EQ(run_program({PENSTOCK_PROGRAM, command, scratch_ / "parted"}).exit_code, 0);
  }
}

TEST_F(Resume, KeepsTheThreadsOfTheCheckpointUnlessOthersAreAskedFor) {
  train_well("run", {"--train.steps", "2", "--train.threads", "2"});
  const Ending same = train("run", {"--train.steps", "3", "--train.threads", "0", "--resume"});
  EXPECT_NE(same.out.find("2 threads a rank"), std::string::npos) << same.out;
  EXPECT_TRUE(same.complaints().empty()) << same.err;
  const Ending other = train("run", {"--train.steps", "4", "--train.threads", "1", "--resume"});
  EXPECT_NE(other.err.find("train.threads = 1 where the checkpoint's run had 2"), std::string::npos)
      << other.err;
}

TEST_F(Resume, SaysWhatIsPassedOverAndUsesTheOneBefore) {
  train_well("whole", {"--train.steps", "8"});
  for (const char* file : {"checkpoint.json", "optimizer-00003-of-00006.safetensors"}) {
    SCOPED_TRACE(file);
    train_well("run", {"--train.steps", "6"});
    damage("run/checkpoints/step-000006/" + std::string(file));
    const Ending ending = train("run", {"--train.steps", "8", "--resume"}, 2, true);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    ASSERT_EQ(ending.complaints().size(), 2u) << ending.err;
    EXPECT_NE(ending.complaints()[0].find("step-000006 cannot be used: "), std::string::npos) << ending.err;
    EXPECT_NE(ending.complaints()[0].find(file), std::string::npos) << ending.err;
    EXPECT_NE(ending.complaints()[1].find("continuing from "), std::string::npos) << ending.err;
    EXPECT_TRUE(fs::exists(scratch_ / "run/checkpoints/step-000006.damaged"));
    expect_same("run", "whole");
    fs::remove_all(scratch_ / "run");
  }
}

// Else the model of the first end would count as that of the second.
TEST_F(Resume, LeavesNothingOfAnEarlierEndWhenItFailsBeforeItsOwn) {
  train_well("run", {"--train.steps", "4"});
  const std::string first = scratch_.read("run/weights.safetensors");
  fs::remove_all(scratch_ / "run/checkpoints/step-000004");
  const Arguments again{"--train.steps", "4", "--train.lr", "0.01", "--resume"};
  fs::create_directory(scratch_ / "run/weights.safetensors.part");  // in the way of the second end
  EXPECT_EQ(train("run", again).exit_code, 3);
  EXPECT_TRUE(fs::exists(scratch_ / "run/checkpoints/step-000004"));
  for (const char* file : {"summary.json", "weights.safetensors", "timeline.json"})
    EXPECT_FALSE(fs::exists(scratch_ / ("run/" + std::string(file)))) << file;
  fs::remove(scratch_ / "run/weights.safetensors.part");
  train_well("run", again);
  EXPECT_NE(scratch_.read("run/weights.safetensors"), first);
}

TEST_F(Resume, KeepsTheEarlierEndWhenItFailsBeforeItsFirstStep) {
  train_well("run", {"--train.steps", "4"});
  const std::string weights = scratch_.read("run/weights.safetensors"),
                    summary = scratch_.read("run/summary.json");
  const Arguments resumes = with_threads(2, arguments("run", {"--train.steps", "6", "--resume"}));
  const Ending failed = run_program(with({"sh", "-c", "ulimit -f 1; exec \"$@\"", "sh"}, resumes));
  EXPECT_EQ(failed.exit_code, 3) << "run.toml does not find room";
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == weights);
  EXPECT_EQ(scratch_.read("run/summary.json"), summary);
  train_well("run", {"--train.steps", "6", "--resume"});
}

TEST_F(Resume, RefusesWhenAllCheckpointsAreDamaged) {
  train_well("run", {"--train.steps", "4"});
  for (const char* step : {"step-000002", "step-000004"}) {
    damage("run/checkpoints/" + std::string(step) + "/model-00001-of-00006.safetensors");
  }
  expect_refusal("run", {}, "holds no valid checkpoint");
  EXPECT_TRUE(fs::exists(scratch_ / "run/checkpoints/step-000004")) << "a refused resume changes nothing";
}

TEST_F(Resume, RefusesWhereNoRunOrNoCheckpointIs) {
  expect_refusal("nowhere", {}, "holds no run to resume");
  train_well("run", {"--train.checkpoint_every", "0"});
  EXPECT_FALSE(fs::exists(scratch_ / "run/checkpoints"));
  expect_refusal("run", {"--train.steps", "20"}, "ended without a checkpoint");
  expect_refusal("run", {"--train.checkpoint_every", "0", "--train.lr", "0.5"}, "ended without a checkpoint");
}

TEST_F(Resume, OfAFinishedRunWithoutCheckpointsOrItsPageIsFinished) {
  train_well("run", {"--train.checkpoint_every", "0"});
  const std::string weights = scratch_.read("run/weights.safetensors");
  for (const char* page : {"report.html", "trace.json"}) fs::remove(scratch_ / ("run/" + std::string(page)));
  const Ending ending = train("run", {"--train.checkpoint_every", "0", "--resume"});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("finished  all "), std::string::npos) << ending.out;
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == weights);
  for (const char* page : {"report.html", "trace.json"})
    EXPECT_TRUE(fs::exists(scratch_ / ("run/" + std::string(page))));
}

TEST_F(Resume, BeginsAgainWhenTheRunEndedBeforeItsFirstCheckpoint) {
  train_well("whole", {});
  fs::create_directories(scratch_ / "run/checkpoints/step-000002.partial");
  scratch_.write("run/run.toml", "x");
  scratch_.write("run/metrics.jsonl", "{\"step\":1}\n{\"st");
  const Ending ending = train("run", {"--resume"});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
  EXPECT_NE(ending.err.find("holds no checkpoint yet"), std::string::npos) << ending.err;
  EXPECT_FALSE(fs::exists(scratch_ / "run/checkpoints/step-000002.partial"));
  expect_same("run", "whole");
}

// As if the disk of the checkpoints were not mounted.
TEST_F(Resume, RefusesToBeginAgainWhereTheRunHadCheckpoints) {
  train_well("run", {});
  fs::remove(scratch_ / "run/summary.json");
  fs::rename(scratch_ / "run/checkpoints", scratch_ / "elsewhere");
  const std::string metrics = scratch_.read("run/metrics.jsonl");
  expect_refusal("run", {}, "holds no checkpoint, though its metrics.jsonl tells of one of step ");
  fs::create_directories(scratch_ / "run/checkpoints");
  expect_refusal("run", {}, "is the disk of ");
  EXPECT_EQ(scratch_.read("run/metrics.jsonl"), metrics);
  scratch_.write("run/metrics.jsonl", metrics + "{\"step\":6,\"checkpoint\":");  // as a lost host leaves it
  expect_refusal("run", {}, "tells of one of step ");
  scratch_.write("run/metrics.jsonl", metrics);
  fs::remove(scratch_ / "run/checkpoints");
  fs::rename(scratch_ / "elsewhere", scratch_ / "run/checkpoints");
  train_well("run", {"--resume"});
}

TEST_F(Resume, WritesDamagedWeightsOfAFinishedRunAgain) {
  train_well("run", {});
  const std::string weights = scratch_.read("run/weights.safetensors");
  fs::resize_file(scratch_ / "run/weights.safetensors", 1000);
  const Ending ending = train("run", {"--resume"});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.err.find("weights.safetensors"), std::string::npos) << ending.err;
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == weights);
}

// As it would be for a new run.
TEST_F(Resume, RefusesDamagedWeightsWhereTheRunBeginsAgain) {
  train_well("first", {"--train.steps", "2"});
  const std::string weights = "first/checkpoints/step-000002";
  damage(weights + "/model-00002-of-00006.safetensors");
  fs::create_directories(scratch_ / "run");
  scratch_.write("run/run.toml", "x");
  expect_refusal("run", {"--model.weights", scratch_ / weights}, "is damaged: its checksum is ");
}

// As a disk that is not mounted.
TEST_F(Resume, RefusesWhereTheCheckpointsCannotBeRead) {
  train_well("run", {});
  fs::rename(scratch_ / "run/checkpoints", scratch_ / "elsewhere");
  fs::create_symlink(scratch_ / "nowhere", scratch_ / "run/checkpoints");
  const std::string metrics = scratch_.read("run/metrics.jsonl");
  expect_refusal("run", {"--train.steps", "7"}, "run/checkpoints: cannot be read");
  EXPECT_EQ(scratch_.read("run/metrics.jsonl"), metrics);
  fs::remove(scratch_ / "run/checkpoints");
  fs::rename(scratch_ / "elsewhere", scratch_ / "run/checkpoints");
  train_well("run", {"--train.steps", "7", "--resume"});
}

TEST_F(Resume, NeedsNoSummaryThatCanBeRead) {
  train_well("run", {});
  fs::resize_file(scratch_ / "run/summary.json", 300 << 20);
  const Ending ending = train("run", {"--train.steps", "7", "--resume"}, 2, true);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.err.find("summary.json"), std::string::npos) << ending.err;
}

TEST_F(Resume, RefusesSettingsThatTheStateDoesNotFit) {
  train_well("run", {"--train.steps", "2"});
  const std::vector<Arguments> changes{{"--model.hidden", "32"},      {"--model.layers", "5"},
                                       {"--train.precision", "f32"},  {"--train.seed", "2"},
                                       {"--data.seq_len", "28"},      {"--train.shuffle", "false"},
                                       {"--model.rope_theta", "1e5"}, {"--model.tied_embeddings", "true"}};
  for (const Arguments& change : changes) {
    const Ending ending = train("run", {change[0], change[1], "--resume"});
    EXPECT_EQ(ending.exit_code, 2) << change[0];
    EXPECT_NE(ending.err.find("does not fit: " + change[0].substr(2) + " = "), std::string::npos)
        << ending.err;
  }
  expect_refusal("run", {"--train.steps", "1"}, "train.steps = 1 is less than the 2 steps");
  const std::string corpus = scratch_.read("corpus.txt");
  std::string other = corpus;
  other[100] ^= 1;
  scratch_.write("corpus.txt", other);
  expect_refusal("run", {"--train.steps", "4"}, "does not fit: the data has other tokens than");
  other = corpus;
  other.back() ^= 1;
  scratch_.write("corpus.txt", other);
  expect_refusal("run", {"--train.steps", "4"}, "does not fit: the held-out data has other tokens");
  scratch_.write("corpus.txt", corpus.substr(500));
  expect_refusal("run", {"--train.steps", "4"}, "does not fit: the data has ");
}

TEST_F(Resume, SaysWhichChangedSettingsChangeTheBits) {
  for (const Arguments& change : std::vector<Arguments>{{"--train.lr", "0.1"},
                                                        {"--schedule.slices", "2"},
                                                        {"--train.batch", "6"},
                                                        {"--train.clip", "0"}}) {
    train_well("run", {"--train.steps", "2"});
    const Ending ending = train("run", {change[0], change[1], "--train.steps", "3", "--resume"});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
    EXPECT_EQ(ending.complaints()[0].find("note: " + change[0].substr(2) + " = "), 0u) << ending.err;
    fs::remove_all(scratch_ / "run");
  }
}

TEST_F(Resume, SaysNothingWhereTheSameDataHasMoved) {
  train_well("run", {"--train.steps", "2"});
  fs::rename(scratch_ / "corpus.txt", scratch_ / "elsewhere.txt");
  train_well("run", {"--train.steps", "3", "--resume", "--data.text", scratch_ / "elsewhere.txt"});
}

TEST_F(Resume, HasNothingToDoAfterTheLastStep) {
  train_well("run", {});
  const auto before = scratch_.read("run/summary.json");
  for (const bool mpirun : {false, true}) {
    const Ending ending = train("run", {"--resume"}, 2, mpirun);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_NE(ending.out.find("finished  all 5 steps"), std::string::npos) << ending.out;
  }
  EXPECT_EQ(scratch_.read("run/summary.json"), before);
}

// A run that was done, was given more steps, and was killed after the last checkpoint: what it leaves is old.
TEST_F(Resume, WritesWhatIsMissingAfterTheLastStep) {
  train_well("run", {"--train.steps", "3"});
  const auto old_summary = scratch_.read("run/summary.json");
  const auto old_weights = scratch_.read("run/weights.safetensors");
  train_well("run", {"--train.steps", "6", "--resume"});
  const auto weights = scratch_.read("run/weights.safetensors");
  scratch_.write("run/summary.json", old_summary);
  scratch_.write("run/weights.safetensors", old_weights);
  train_well("run", {"--train.steps", "6", "--resume"});
  EXPECT_EQ(nlohmann::json::parse(scratch_.read("run/summary.json")).at("steps"), 6);
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == weights);
}

TEST_F(Resume, WritesTheWeightsAgainWhenTheyAreGone) {
  train_well("run", {});
  const auto weights = scratch_.read("run/weights.safetensors");
  for (const bool mpirun : {false, true}) {
    fs::remove(scratch_ / "run/weights.safetensors");
    train_well("run", {"--resume"}, 2, mpirun);
    EXPECT_TRUE(scratch_.read("run/weights.safetensors") == weights);
    EXPECT_EQ(lines_of(scratch_.read("run/metrics.jsonl")).size(), 5u) << "no step is done again";
  }
}

TEST_F(Resume, GoesOnWithoutADamagedLineOfTheMetrics) {
  train_well("run", {"--train.steps", "4"});
  std::string metrics = scratch_.read("run/metrics.jsonl");
  metrics[metrics.find('\n') + 1] = '\x01';
  scratch_.write("run/metrics.jsonl", metrics);
  const Ending ending = train("run", {"--train.steps", "6", "--resume"}, 2, true);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.err.find("metrics.jsonl, line 2: \"\\x01"), std::string::npos) << ending.err;
  EXPECT_EQ(lines_of(scratch_.read("run/metrics.jsonl")).size(), 5u);
}

TEST_F(Resume, CanBeTriedDry) {
  train_well("run", {"--train.steps", "4"});
  const auto dry = [&](const Arguments& settings) {
    Arguments all{"--dry-run"};
    all.insert(all.end(), settings.begin(), settings.end());
    return train("run", all);
  };
  EXPECT_EQ(dry({}).exit_code, 2) << "the directory holds a run";
  const Ending more = dry({"--resume"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_NE(more.out.find("resumes   after step 4, from "), std::string::npos) << more.out;
  EXPECT_NE(more.out.find("2 ranks together need "), std::string::npos) << more.out;
  damage("run/checkpoints/step-000004/checkpoint.json");
  EXPECT_NE(dry({"--resume"}).out.find("resumes   after step 2, from "), std::string::npos);
  EXPECT_TRUE(fs::exists(scratch_ / "run/checkpoints/step-000004")) << "a dry run changes nothing";
}

TEST_F(Resume, NamesTheLastGoodCheckpointWhenNumbersAreNotFinite) {
  train_well("run", {"--train.steps", "3"});
  const Ending ending = train("run", {"--train.lr", "1e38", "--train.steps", "20", "--resume"});
  EXPECT_EQ(ending.exit_code, 3) << ending.err;
  EXPECT_NE(ending.err.find("the last good checkpoint is " + scratch_ / "run/checkpoints/step-0000"),
            std::string::npos)
      << ending.err;
}

TEST_F(Resume, IsRefusedWithoutTheFlagAndWhileTheRunGoesOn) {
  train_well("run", {"--train.steps", "2"});
  const Ending ending = train("run", {"--train.steps", "2"});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_NE(ending.err.find("or continue with --resume"), std::string::npos) << ending.err;
  RunningProgram running(with_threads(2, arguments("run", {"--train.steps", "1000000", "--resume"})));
  const Seconds until = seconds_now() + 60;
  while (lines_of(scratch_.read("run/metrics.jsonl")).size() < 3 && seconds_now() < until) sleep_a_little();
  expect_refusal("run", {"--train.steps", "1000000"}, "is in use by another run");
}

}  // namespace
}  // namespace penstock::testing
