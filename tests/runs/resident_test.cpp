// SPDX-License-Identifier: Apache-2.0
// What the kernel counts of a process stays near what was predicted of its tensors, its copy for checkpoints,
// and its libraries.
#include <gtest/gtest.h>

#include <map>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

class ResidentSet : public ::testing::Test {
 protected:
  void SetUp() override { scratch_.write("run.toml", small_run_file(scratch_)); }

  // Large enough that a tenth of the process is less than what a mistake about tensors would be.
  Arguments arguments(const Arguments& more) const {
    Arguments all{"train",
                  scratch_ / "run.toml",
                  "--model.hidden",
                  "256",
                  "--model.ffn",
                  "688",
                  "--data.seq_len",
                  "2048",
                  "--train.steps",
                  "3",
                  "--train.batch",
                  "2",
                  "--data.validation_fraction",
                  "0",
                  "--memory.policy"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  void expect_near(const Ending& ending, std::size_t processes, double least_share_of_tensors = 0.4) const {
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    const auto summary = nlohmann::json::parse(scratch_.read("run/summary.json"));
    ASSERT_EQ(summary.at("processes").size(), processes);
    for (const auto& process : summary.at("processes")) {
      const double predicted = process.at("predicted_resident_bytes");
      const double measured = process.at("measured_resident_bytes");
      EXPECT_NEAR(predicted / measured, 1, 0.1) << process.dump(2);
      const double libraries = process.at("libraries_bytes");
      EXPECT_NEAR(process.at("predicted_libraries_bytes").get<double>() / libraries, 1, 0.15)
          << process.dump(2);
      EXPECT_GT(process.at("predicted_tensor_bytes").get<double>(),
                least_share_of_tensors * process.at("libraries_bytes").get<double>());
    }
  }

  Scratch scratch_;
};

TEST_F(ResidentSet, IsPredictedWithinTenPercentInOneProcessOfThreads) {
  expect_near(run_program(with_threads(2, arguments({"none"}))), 1);
}

TEST_F(ResidentSet, IsPredictedWithinTenPercentInBf16AndWhenRecordsLeave) {
  expect_near(run_program(with_threads(
                  2, arguments({"balanced", "--memory.offload", "0.5", "--train.precision", "bf16"}))),
              1);
}

TEST_F(ResidentSet, IsPredictedWithinTenPercentWithCopiesOfTheStateInMemory) {
  expect_near(run_program(with_threads(2, arguments({"none", "--train.buddy_every", "1", "--train.buddy_dir",
                                                     scratch_ / "memory"}))),
              1);
  const auto summary = nlohmann::json::parse(scratch_.read("run/summary.json"));
  EXPECT_GT(summary.at("processes")[0].at("state_copies_bytes").get<double>(), 20.0 * MiB);
}

TEST_F(ResidentSet, IsPredictedWithinTenPercentOfEachRankOfMpirun) {
  expect_near(run_program(with_mpirun(2, arguments({"none"}))), 2);
}

// Offloaded records are no part of what libraries take.
TEST_F(ResidentSet, OfTheHostsShareIsPredictedByItself) {
  std::map<std::string, nlohmann::json> process;
  for (const char* share : {"0", "1"}) {
    const Ending ending = run_program(
        with_threads(2, arguments({"none", "--memory.offload", share, "--schedule.slices", "16"})));
    expect_near(ending, 1, 0.2);
    const auto summary = nlohmann::json::parse(scratch_.read("run/summary.json"));
    process[share] = summary.at("processes")[0];
    std::filesystem::remove_all(scratch_ / "run");
  }
  const double host = process["1"].at("predicted_host_bytes");
  EXPECT_GT(host, 20.0 * MiB);
  EXPECT_EQ(process["0"].at("predicted_host_bytes"), 0);
  EXPECT_NEAR(process["1"].at("libraries_bytes").get<double>(),
              process["0"].at("libraries_bytes").get<double>(), 0.5 * host);
}

// Whose process is libraries almost alone: what ranks leave behind before the first step would show.
TEST_F(ResidentSet, IsPredictedWithinTenPercentOfSmallModelsToo) {
  for (const int ranks : {1, 2, 4}) {
    const Arguments small{"train", scratch_ / "run.toml", "--parallel.pp", std::to_string(ranks)};
    expect_near(run_program(with_threads(ranks, small)), 1, 0);
    std::filesystem::remove_all(scratch_ / "run");
  }
  expect_near(run_program(with_mpirun(2, {"train", scratch_ / "run.toml"})), 2, 0);
}

}  // namespace
}  // namespace penstock::testing
