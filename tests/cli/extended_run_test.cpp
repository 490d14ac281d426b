// SPDX-License-Identifier: Apache-2.0
// What a finished run says and leaves when it is resumed, as it is, with more steps, or on another mesh.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class ExtendedRun : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("run.toml", small_run_file(scratch_));
    const Ending ending = train({"--train.steps", "2"});
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
  }

  Ending train(const Arguments& settings) {
    const Arguments run{"train", scratch_ / "run.toml", "--train.checkpoint_every", "1"};
    return run_program(with_threads(2, with(run, settings)));
  }
  Ending resume(const Arguments& settings) { return train(with({"--resume"}, settings)); }

  void expect_refused(const Ending& ending, const std::string& says) {
    EXPECT_EQ(ending.exit_code, 2) << ending.out;
    EXPECT_NE(ending.err.find(says), std::string::npos) << ending.err;
  }

  Scratch scratch_;
};

TEST_F(ExtendedRun, DoesNotStopByARequestOfBefore) {
  scratch_.write("run/stop", "");
  const Ending same = resume({"--train.steps", "2"});
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_TRUE(same.complaints().empty()) << same.err;
  EXPECT_NE(same.out.find("finished"), std::string::npos) << same.out;
  const Ending extended = resume({"--train.steps", "4"});
  EXPECT_NE(extended.out.find("trained   4 steps"), std::string::npos) << extended.out << extended.err;
}

TEST_F(ExtendedRun, ThatStopsHasNoReportAndItsWeightsInACheckpoint) {
  EXPECT_TRUE(fs::exists(scratch_ / "run/report.html"));
  scratch_.write("run/stop", "");
  const Ending stopped = resume({"--train.steps", "6"});
  EXPECT_NE(stopped.out.find("stopped   after step 3"), std::string::npos) << stopped.out << stopped.err;
  EXPECT_FALSE(fs::exists(scratch_ / "run/report.html")) << "it shows the weights of step 2 as the end";
  const std::string newest = scratch_ / "run/checkpoints/step-000003";
  for (const char* run : {"run", "run/"}) {
    expect_refused(program({"convert", scratch_ / run, "-o", scratch_ / "model"}),
                   "its newest weights are in " + newest + "; convert that");
  }
  EXPECT_EQ(program({"convert", newest, "-o", scratch_ / "model"}).exit_code, 0);
}

TEST_F(ExtendedRun, OnAMeshThatItsNumericsDoNotAllowIsToldWhichTheyDo) {
  for (const std::string& file : {scratch_ / "run.toml", scratch_ / "run/run.toml"}) {
    const Arguments resumes{"train", file, "--resume", "--train.steps", "4", "--parallel.pp", "1"};
    expect_refused(run_program(with_threads(2, with(resumes, {"--parallel.tp", "2"}))),
                   "parallel.tp = 2 does not fit the resumed run: numerics.tensor = 1 was fixed when the run "
                   "began, since its bits depend on it; use parallel.tp = 1");
    expect_refused(run_program(with_threads(2, with(resumes, {"--parallel.dp", "2"}))),
                   "parallel.dp = 2 does not fit the resumed run: numerics.replicas = 1 was fixed when the "
                   "run began, since its bits depend on it; use parallel.dp = 1");
    expect_refused(
        run_program(with_threads(2, with(resumes, {"--parallel.tp", "2", "--numerics.tensor", "3"}))),
        "numerics.tensor = 3, but it was fixed as 1 when the run began, since its bits depend on it; set it "
        "back, or leave it out");
  }
}

}  // namespace
}  // namespace penstock::testing
