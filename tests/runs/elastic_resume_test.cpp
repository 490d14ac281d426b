// SPDX-License-Identifier: Apache-2.0
// --resume on another mesh: more or fewer replicas and devices, other shares of states, another transport.
// The groups of the batch (numerics.replicas) stay those of the checkpoint, and so do the bits.
#include <gtest/gtest.h>

#include "runs/resumed_run.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

struct Leg {
  int replicas = 1, devices = 1;
  const char* shard = "auto";
  bool mpirun = false;
  int shard_group = 0;  // 0: all
};

class ElasticResume : public ResumedRun {
 protected:
  // Four groups at the start; nothing is said of them later.
  static Arguments settings_of(int steps, const Leg& leg, bool resumes, const Arguments& more = {}) {
    Arguments all{"--train.steps",    std::to_string(steps),
                  "--train.batch",    "8",
                  "--parallel.dp",    std::to_string(leg.replicas),
                  "--parallel.pp",    std::to_string(leg.devices),
                  "--parallel.shard", leg.shard};
    const Arguments begin{"--numerics.replicas", "4"}, go_on{"--resume"};
    const Arguments& start = resumes ? go_on : begin;
    all.insert(all.end(), start.begin(), start.end());
    if (leg.shard_group > 0)
      all.insert(all.end(), {"--parallel.shard_group", std::to_string(leg.shard_group)});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Two steps on each mesh.
  void expect_bits_of_one_run(const std::vector<Leg>& legs, const Arguments& more = {}) {
    const int steps = 2 * static_cast<int>(legs.size());
    train_well("whole", settings_of(steps, {}, false, more), 1);
    int done = 0;
    for (const Leg& leg : legs) {
      const Arguments settings = settings_of(done + 2, leg, done > 0, more);
      const Ending ending = train("parted", settings, leg.replicas * leg.devices, leg.mpirun);
      done += 2;
      ASSERT_EQ(ending.exit_code, 0) << ending.err;
    }
    expect_same("parted", "whole");
    expect_same_checkpoint(steps);
  }

  void expect_same_checkpoint(int steps) {
    char last[40];
    std::snprintf(last, sizeof last, "/checkpoints/step-%06d", steps);
    const auto wanted = files_below(scratch_ / ("whole" + std::string(last)));
    EXPECT_GT(wanted.size(), 2u);
    const auto found = files_below(scratch_ / ("parted" + std::string(last)));
    EXPECT_EQ(found.size(), wanted.size());
    for (const auto& [name, bytes] : wanted)
      EXPECT_TRUE(found.contains(name) && found.at(name) == bytes) << name;
  }

  // What parallel.dp = "auto" makes of so many ranks, with `devices` in each pipeline.
  void expect_replicas(int ranks, int replicas, bool mpirun, int devices = 1) {
    SCOPED_TRACE(std::to_string(ranks) + (mpirun ? " ranks of mpirun" : " threads"));
    Arguments settings = settings_of(steps_ += 1, {1, devices}, true);
    settings.insert(settings.end(), {"--parallel.dp", "auto"});
    const Ending ending = train("run", settings, ranks, mpirun);
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_NE(scratch_.read("run/run.toml").find("dp = " + std::to_string(replicas) + "\n"),
              std::string::npos);
    const int needed = replicas * devices;
    const std::string idle = std::to_string(needed) + " of the " + std::to_string(ranks) + " ranks have work";
    EXPECT_EQ(ending.err.find(idle) != std::string::npos, needed < ranks) << ending.err;
  }

  int steps_ = 0;
};

TEST_F(ElasticResume, GoesOnToTheSameBitsOnAnyMesh) {
  expect_bits_of_one_run({{4, 1, "weights"},
                          {2, 2, "optimizer", true},
                          {1, 4, "off"},
                          {4, 2, "optimizer", true, 2},
                          {2, 1, "weights", true},
                          {1, 1, "weights"},
                          {4, 1, "off", true},
                          {2, 2, "weights"}});
}

TEST_F(ElasticResume, GoesOnToTheSameBitsWithTiedEmbeddings) {
  expect_bits_of_one_run(
      {{2, 2, "weights"}, {4, 1, "off", true}, {1, 2, "off"}, {4, 2, "optimizer"}, {2, 1, "optimizer", true}},
      {"--model.tied_embeddings", "true"});
}

TEST_F(ElasticResume, GoesOnToTheSameBitsWithSeveralStagesOnADevice) {
  const Arguments chunks{
      "--schedule.name", "interleaved", "--schedule.slices", "1", "--schedule.chunks", "2"};
  expect_bits_of_one_run(
      {{2, 2, "weights"}, {1, 2, "off", true}, {4, 1, "weights", true}, {2, 2, "optimizer"}}, chunks);
}

TEST_F(ElasticResume, SaysWhatChangedOfTheMesh) {
  train_well("run", settings_of(2, {4, 1, "weights"}, false), 4);
  const Ending ending = train("run", settings_of(4, {1, 2, "off"}, true), 2, true);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  for (const char* change : {"parallel.pp = 2 where the run had 1", "parallel.dp = 1 where the run had 4",
                             "parallel.shard = \"off\" where the run had \"weights\""}) {
    const std::string line =
        "changed   " + std::string(change) + ": the run continues, and this changes no bit\n";
    EXPECT_NE(ending.out.find(line), std::string::npos) << line << "\n" << ending.out;
  }
  train_well("run", settings_of(6, {1, 2, "off"}, true), 2, true);
}

// docs/moe.md: bits are the same for one d.
TEST_F(ElasticResume, GoesOnWithOtherReplicasOfExpertsAndSaysThatBitsDiffer) {
  const Arguments experts{"--model.experts", "4", "--model.experts_per_token", "2"};
  train_well("run", settings_of(2, {2, 1}, false, experts), 2);
  const Ending ending = train("run", settings_of(4, {1, 1}, true, experts), 1);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find(
                "changed   parallel.dp = 1 where the run had 2: the run continues, but not bit-identical"),
            std::string::npos)
      << ending.out;
}

// Other context ranks cut other sums.
TEST_F(ElasticResume, GoesOnWithOtherContextRanksAndSaysThatBitsDiffer) {
  const Arguments even{"--data.seq_len", "32"};
  Arguments first = settings_of(2, {1, 1}, false, even), second = settings_of(4, {1, 1}, true, even);
  first.insert(first.end(), {"--parallel.cp", "2", "--parallel.tp", "2"});
  train_well("run", first, 4);
  const Ending ending = train("run", second, 1, true);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find(
                "changed   parallel.cp = 1 where the run had 2: the run continues, but not bit-identical"),
            std::string::npos)
      << ending.out;
  EXPECT_EQ(ending.out.find("parallel.cp_mode"), std::string::npos) << ending.out;
}

// The run file is replaced before the first step of a start, the checkpoint after it.
TEST_F(ElasticResume, ComparesTheMeshWithThatOfTheCheckpointAndNotOfAStartWithoutAStep) {
  const Arguments two{"--data.seq_len", "32", "--parallel.cp", "2"}, one{"--data.seq_len", "32"};
  train_well("run", settings_of(2, {1, 1}, false, two), 2);
  std::string killed = scratch_.read("run/run.toml");
  const std::size_t ranks = killed.find("\ncp = 2\n");
  ASSERT_NE(ranks, std::string::npos) << killed;
  scratch_.write("run/run.toml", killed.replace(ranks, 8, "\ncp = 1\n"));
  const auto dry = [&](Arguments settings, int count) {
    settings.push_back("--dry-run");
    return train("run", settings_of(4, {1, 1}, true, settings), count);
  };
  const Ending back = dry(two, 2), changed = dry(one, 1);
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(back.out.find("changed   "), std::string::npos) << back.out;
  EXPECT_NE(changed.out.find("changed   parallel.cp = 1 where the run had 2: the run continues, but not "),
            std::string::npos)
      << changed.out;
}

TEST_F(ElasticResume, TakesAsManyRanksAsTheGroupsAllowWhenAuto) {
  train_well("run", settings_of(steps_ = 1, {2, 1}, false), 2);
  for (const bool mpirun : {false, true}) {
    for (const auto& [ranks, replicas] : {std::pair(1, 1), {2, 2}, {3, 2}, {4, 4}, {6, 4}})
      expect_replicas(ranks, replicas, mpirun);
  }
  expect_replicas(5, 2, true, 2);
}

TEST_F(ElasticResume, RefusesOtherGroupsThanTheCheckpoints) {
  train_well("run", settings_of(2, {2, 1}, false), 2);
  const auto refused = [&](const Leg& leg, const Arguments& more, const std::string& says) {
    const Ending ending = train("run", settings_of(4, leg, true, more), leg.replicas * leg.devices);
    EXPECT_EQ(ending.exit_code, 2) << ending.err;
    ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
    EXPECT_NE(ending.complaints()[0].find(says), std::string::npos) << ending.err;
  };
  refused({2, 1}, {"--numerics.replicas", "2"},
          "does not fit: numerics.replicas = 2 where the checkpoint's run had 4; set it back");
  refused(
      {8, 1}, {},
      "parallel.dp = 8 does not fit the resumed run: numerics.replicas = 4 was fixed when the run began, ");
  refused({3, 1}, {"--train.batch", "12"}, "; use parallel.dp = 2 or 4");
  train_well("run", settings_of(2, {2, 1}, true), 2);
}

}  // namespace
}  // namespace penstock::testing
