// SPDX-License-Identifier: Apache-2.0
// When a supervised run is started again, and what its time is counted as.
#include "cli/supervise/attempts.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock::cli {
namespace {

Attempt failed(std::int64_t resumed, std::int64_t last, const std::string& reason, int exit_code = 3) {
  Attempt attempt{.seconds = 20, .exit_code = exit_code, .reason = reason, .resumed = resumed};
  for (std::int64_t step = resumed + 1; step <= last; ++step) attempt.steps.push_back({step, 1.0});
  return attempt;
}

TEST(Supervision, TriesAgainForAsLongAsItMayHelp) {
  std::vector<Attempt> attempts{failed(0, 5, "rank 1 failed: its process is gone")};
  EXPECT_TRUE(decide(attempts, 3).again);
  attempts.push_back(failed(4, 5, "rank 0 failed: its process is gone"));
  EXPECT_TRUE(decide(attempts, 3).again);
  attempts.push_back(failed(4, 9, "rank 1 failed: its process is gone"));
  EXPECT_TRUE(decide(attempts, 3).again);
  attempts.push_back(failed(8, 12, "the disk is full"));
  EXPECT_EQ(decide(attempts, 3).why, "--restarts 3 are used up");
}

TEST(Supervision, GivesUpAStepThatFailsTwiceForOneReason) {
  std::vector<Attempt> attempts{failed(0, 5, "not finite"), failed(4, 5, "not finite")};
  EXPECT_EQ(decide(attempts, 9).why, "step 6 has failed twice for the same reason");
  attempts = {failed(0, 5, "not finite"), failed(4, 5, "another"), failed(4, 5, "not finite")};
  EXPECT_FALSE(decide(attempts, 9).again);
  attempts = {failed(0, 5, "not finite"), failed(4, 6, "not finite")};
  EXPECT_TRUE(decide(attempts, 9).again);
}

TEST(Supervision, TriesRefusedInputOnce) {
  for (const Exit exit : {Exit::No, Exit::WrongInput}) {
    Attempt refused = failed(0, 0, "data.text is missing", static_cast<int>(exit));
    EXPECT_TRUE(decide({refused}, 9).again) << "the launcher's exit code";
    refused.complained = true;
    EXPECT_FALSE(decide({refused}, 9).again);
  }
}

TEST(Supervision, PausesLongerWhileNoStepIsGained) {
  std::vector<Attempt> attempts;
  std::vector<Seconds> pauses;
  for (int i = 0; i < 9; ++i) {
    attempts.push_back(failed(0, 2, "reason " + std::to_string(i)));
    pauses.push_back(decide(attempts, 99).pause);
  }
  EXPECT_EQ(pauses, (std::vector<Seconds>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
  attempts.push_back(failed(0, 3, "gained"));
  EXPECT_EQ(decide(attempts, 99).pause, 1);
}

TEST(Supervision, CountsEachSecondOnce) {
  std::vector<Attempt> attempts{failed(0, 6, "a"), failed(4, 10, "b")};
  attempts[1].pause = 2;
  for (DoneStep& step : attempts[1].steps) step.seconds = 1.5;
  const TimeUse use = time_use(attempts);
  EXPECT_DOUBLE_EQ(use.productive, 4 * 1 + 6 * 1.5);
  EXPECT_DOUBLE_EQ(use.recomputed, 2);
  EXPECT_DOUBLE_EQ(use.pauses, 2);
  EXPECT_DOUBLE_EQ(use.all(), 20 + 20 + 2);
}

TEST(Supervision, ReadsWholeLinesOfMetrics) {
  const std::string metrics =
      "{\"step\":1,\"step_s\":0.5}\n{\"step\":2,\"step_s\":0.25}\n[3]\n{\"step\":3,\"step_s\":null}\n{"
      "\"step\":4,";
  const std::vector<DoneStep> steps = steps_after(1, metrics);
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].step, 2);
  EXPECT_EQ(steps[0].seconds, 0.25);
  EXPECT_TRUE(steps_after(0, "").empty());
}

}  // namespace
}  // namespace penstock::cli
