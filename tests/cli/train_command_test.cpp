// SPDX-License-Identifier: Apache-2.0
// What a run that ends well prints and leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class TrainCommand : public ::testing::Test {
 protected:
  void SetUp() override { scratch_.write("run.toml", small_run_file(scratch_)); }

  Ending train(const Arguments& settings) {
    Arguments arguments{"train", scratch_ / "run.toml"};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    return run_program(with_threads(2, arguments));
  }

  Scratch scratch_;
};

TEST_F(TrainCommand, LeavesItsConfigurationMetricsSummaryAndWeights) {
  const Ending ending = train({"--train.evaluate_every", "2"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const auto steps = lines_of(scratch_.read("run/metrics.jsonl"));
  ASSERT_EQ(steps.size(), 5u);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto step = nlohmann::json::parse(steps[i]);
    EXPECT_EQ(step.at("step"), i + 1);
    EXPECT_EQ(step.at("tokens"), (i + 1) * 120);
    EXPECT_EQ(step.contains("evaluation_loss"), i % 2 == 1 || i == 4);
  }
  const auto summary = nlohmann::json::parse(scratch_.read("run/summary.json"));
  EXPECT_EQ(summary.at("devices").size(), 2u);
  EXPECT_EQ(summary.at("loss"), nlohmann::json::parse(steps.back()).at("loss"));
  for (const char* file : {"run/weights.safetensors", "run/program.txt", "run/timeline.json"}) {
    EXPECT_GT(fs::file_size(scratch_ / file), 0u) << file;
  }
  const auto is_curves = [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("events.out.tfevents.") && entry.file_size() > 1000;
  };
  EXPECT_EQ(std::count_if(fs::directory_iterator(scratch_ / "run"), {}, is_curves), 1);
}

TEST_F(TrainCommand, LeavesAConfigurationThatTrainsTheSame) {
  ASSERT_EQ(train({}).exit_code, 0);
  const Ending again =
      run_program(with_threads(2, {"train", scratch_ / "run/run.toml", "--output.dir", scratch_ / "again"}));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == scratch_.read("again/weights.safetensors"));
}

TEST_F(TrainCommand, TrainsAFileWhoseMicroBatchesHaveDifferentNumbersOfSlices) {
  scratch_.write("uneven.csv", run_program({PENSTOCK_PROGRAM, "show", "--schedule", "slimpipe", "-p", "2",
                                            "-n", "8,2,8,3", "--format", "csv"})
                                   .out);
  std::string file = scratch_.read("run.toml");
  const std::string named = "name = \"slimpipe\"\nslices = 4\n";
  file.replace(file.find(named), named.size(), "file = \"" + scratch_ / "uneven.csv" + "\"\n");
  ASSERT_EQ(train({"--train.precision", "f32", "--output.dir", scratch_ / "even"}).exit_code, 0);
  scratch_.write("run.toml", file);
  const Ending ending = train({"--train.precision", "f32"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("4 micro-batches of 2 to 8 slices"), std::string::npos) << ending.out;
  const auto loss = [&](const char* run) {
    return nlohmann::json::parse(scratch_.read(run))["loss"].get<double>();
  };
  EXPECT_NEAR(loss("run/summary.json"), loss("even/summary.json"), 1e-4);
  const Ending again =
      run_program(with_threads(2, {"train", scratch_ / "run/run.toml", "--output.dir", scratch_ / "again"}));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == scratch_.read("again/weights.safetensors"));
  const Ending simulated = run_program({PENSTOCK_PROGRAM, "simulate", scratch_ / "run", "--json"});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_TRUE(nlohmann::json::parse(simulated.out).contains("measured"));
  EXPECT_EQ(run_program({PENSTOCK_PROGRAM, "report", scratch_ / "run"}).exit_code, 0);
}

TEST_F(TrainCommand, TellsWhereTheTimeGoesWhenAsked) {
  const Ending plain = train({});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(plain.out.find("profile"), std::string::npos);
  EXPECT_FALSE(fs::exists(scratch_ / "run/profile.json"));
  const Ending ending = train({"--profile", "--output.dir", scratch_ / "profiled"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  for (const char* word : {"profile", "attention backward", "weight gradient", "adam", "outside kernels"}) {
    EXPECT_NE(ending.out.find(word), std::string::npos) << word;
  }
  const auto profile = nlohmann::json::parse(scratch_.read("profiled/profile.json"));
  EXPECT_EQ(profile.at("steps").size(), 3u);
  EXPECT_EQ(profile.at("steps")[0].at("devices").size(), 2u);
  EXPECT_NE(scratch_.read("profiled/trace.json").find("\"cat\":\"kernel\""), std::string::npos);
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == scratch_.read("profiled/weights.safetensors"));
}

TEST_F(TrainCommand, NeverWritesIntoAFinishedRun) {
  ASSERT_EQ(train({}).exit_code, 0);
  const std::string before = scratch_.read("run/metrics.jsonl");
  EXPECT_EQ(train({}).exit_code, 2);
  EXPECT_EQ(scratch_.read("run/metrics.jsonl"), before);
}

TEST_F(TrainCommand, PrintsItsConfigurationAndEndsOnRequest) {
  const Ending printed = train({"--print-config"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  scratch_.write("resolved.toml", printed.out);
  EXPECT_EQ(run_program(with_threads(2, {"train", scratch_ / "resolved.toml", "--print-config"})).out,
            printed.out);
  EXPECT_FALSE(fs::exists(scratch_ / "run"));
}

TEST_F(TrainCommand, DrawsTextFromWeightsOfEveryPrecision) {
  for (const char* precision : {"f64", "f32", "bf16"}) {
    const Ending ending = train({"--train.precision", precision, "--sample", "5", "--data.seq_len", "80",
                                 "--output.dir", scratch_ / precision});
    EXPECT_EQ(ending.exit_code, 0) << precision << ": " << ending.err;
    EXPECT_NE(ending.out.find("sample    after the first "), std::string::npos) << ending.out;
  }
}

TEST_F(TrainCommand, DrawsTextFromAFinishedRunToo) {
  const auto text_of = [](const Ending& ending) {
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    const std::size_t begin = ending.out.find("sample    after the first ");
    return begin == std::string::npos ? std::string() : ending.out.substr(begin, 150);
  };
  const std::string drawn = text_of(train({"--sample", "30", "--data.seq_len", "80"}));
  EXPECT_NE(drawn, "");
  const std::string later = text_of(train({"--sample", "30", "--data.seq_len", "80", "--resume"}));
  EXPECT_EQ(later.substr(0, 100), drawn.substr(0, 100));
}

// The share of collectives' time behind which the ranks computed, in the run's output and in its report.
TEST_F(TrainCommand, TellsWhatItHidOfTheCollectivesOfReplicas) {
  const std::string row = "collectives of replicas";
  const auto reported = [&](const std::string& dp) {
    const std::string directory = scratch_ / ("dp" + dp);
    const int ranks = 2 * std::stoi(dp);
    const Ending ending = run_program(with_threads(
        ranks, {"train", scratch_ / "run.toml", "--parallel.dp", dp, "--output.dir", directory}));
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return scratch_.read("dp" + dp + "/report.html").find(row) != std::string::npos;
  };
  EXPECT_FALSE(reported("1"));
  EXPECT_TRUE(reported("2"));
}

}  // namespace
}  // namespace penstock::testing
