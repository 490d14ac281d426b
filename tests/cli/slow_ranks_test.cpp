// SPDX-License-Identifier: Apache-2.0
// plan --from: layers for the ranks that a run had.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

class PlanFrom : public ::testing::Test {
 protected:
  Ending asked(const std::string& times, const std::string& more = "") {
    std::filesystem::create_directories(scratch_ / "run");
    scratch_.write("run/run.toml",
                   "[model]\nlayers = 12\nhidden = 256\nffn = 1024\nheads = 4\n[data]\ntext = "
                   "\"none\"\n[parallel]\npp = 2\ndp = 2\n" +
                       more);
    scratch_.write("run/summary.json", "{\"steps\": 40" + times + "}");
    return program({"plan", "--from", scratch_ / "run"});
  }

  Scratch scratch_;
};

TEST_F(PlanFrom, GivesTheSlowDeviceFewerLayers) {
  // Ranks 0 and 1 are replicas of device 0; the slower of them sets its pace.
  const Ending ending = asked(", \"rank_times\": [1.0, 2.0, 1.0, 1.0]");
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("parallel.layers = [4, 8]"), std::string::npos) << ending.out;
  const auto step = ending.out.find("step");
  EXPECT_LT(std::stod(ending.out.substr(ending.out.find_first_of("0123456789", step))), 0.8) << ending.out;
}

// The run's own comparisons since it last started, whether it has ended or not.
TEST_F(PlanFrom, ReadsTheTimesOfARunUnderWay) {
  std::filesystem::create_directories(scratch_ / "run");
  scratch_.write("run/metrics.jsonl",
                 "{\"step\": 1, \"start\": {}}\n{\"step\": 20, \"rank_times\": [1.0, 1.0, 9.0, 1.0]}\n"
                 "{\"step\": 21, \"start\": {\"resumed_from\": 20}}\n"
                 "{\"step\": 40, \"rank_times\": [1.0, 1.8, 1.0, 1.0]}\n{\"step\": 41}\n"
                 "{\"step\": 60, \"rank_times\": [1.0, 2.2, 1.0, 1.0]}\n{\"step\": 61, \"ran");
  const Ending ending = asked(", \"rank_times\": [1.0, 1.0, 1.0, 1.0]");
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("2.00, 1.00"), std::string::npos) << ending.out;
  std::filesystem::remove(scratch_ / "run/summary.json");
  const Ending under_way = program({"plan", "--from", scratch_ / "run"});
  EXPECT_EQ(under_way.out, ending.out);
  scratch_.write("run/metrics.jsonl", "{\"step\": 1}\n");
  EXPECT_NE(program({"plan", "--from", scratch_ / "run"}).err.find("fewer than 20 steps"), std::string::npos);
}

// Each device has two stages; the slow one's lose layers.
TEST_F(PlanFrom, GivesBothStagesOfASlowDeviceFewerLayers) {
  const Ending ending =
      asked(", \"rank_times\": [1.0, 1.0, 2.0, 2.0]", "[schedule]\nname = \"interleaved\"\nchunks = 2\n");
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const auto list = ending.out.find("parallel.layers = [");
  ASSERT_NE(list, std::string::npos) << ending.out;
  std::array<int, 4> layers{};
  ASSERT_EQ(std::sscanf(ending.out.c_str() + list, "parallel.layers = [%d, %d, %d, %d]", &layers[0],
                        &layers[1], &layers[2], &layers[3]),
            4)
      << ending.out;
  EXPECT_EQ(layers[0] + layers[1] + layers[2] + layers[3], 12);
  EXPECT_EQ(layers[0] + layers[2], 8) << "stages 0 and 2 are the fast device's";
}

TEST_F(PlanFrom, LeavesLayersThatAreGood) {
  const Ending ending = asked(", \"rank_times\": [1.0, 1.01, 1.0, 1.0]");
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("as good as whole layers can be"), std::string::npos) << ending.out;
  EXPECT_EQ(ending.out.find("parallel.layers"), std::string::npos);
}

TEST_F(PlanFrom, RefusesWhatTellsNoTimes) {
  EXPECT_EQ(asked("").exit_code, 1);
  EXPECT_EQ(asked(", \"rank_times\": [1.0, 1.0]").exit_code, 2);
  EXPECT_EQ(asked(", \"rank_times\": [1.0, -1, 1, 1]").exit_code, 2);
  EXPECT_EQ(program({"plan", "--from", scratch_ / "none"}).exit_code, 2);
  EXPECT_EQ(program({"plan", "--from", scratch_ / "run", "--json"}).exit_code, 2);
}

}  // namespace
}  // namespace penstock::testing
