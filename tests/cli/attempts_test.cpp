// SPDX-License-Identifier: Apache-2.0
// When a supervised run is started again, and what its time is counted as.
#include "cli/supervise/attempts.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock::cli {
namespace {

Attempt failed(std::int64_t resumed, std::int64_t last, const std::string& reason, int exit_code = 3) {
  Attempt attempt{.began = 1000,
                  .seconds = 20,
                  .exit_code = exit_code,
                  .reason = reason,
                  .resumed = resumed,
                  .load = 0.5};
  // Three seconds until the first step; a checkpoint of a quarter after each.
  for (std::int64_t step = resumed + 1; step <= last; ++step)
    attempt.steps.push_back({.step = step,
                             .seconds = 1.0,
                             .held_up = 0.25,
                             .time = 1003 + 1.25 * static_cast<double>(step - resumed)});
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

TEST(Supervision, ComparesReasonsWithoutTheirNumbersButForRanks) {
  const auto again = [](const char* first, const char* second) {
    return decide({failed(0, 5, first), failed(4, 5, second)}, 9).again;
  };
  EXPECT_FALSE(again("r/optimizer-00006 cannot be written: 63888 bytes wanted: No space left on device",
                     "r/optimizer-00003 cannot be written: 9872 bytes wanted: No space left on device"));
  EXPECT_FALSE(again("rank 1 has waited 3.54 s for rank 0", "rank 1 has waited 980 ms for rank 0"));
  EXPECT_TRUE(again("rank 1 has waited 3.54 s for rank 0", "rank 1 has waited 3.54 s for rank 2"));
  EXPECT_FALSE(again("rank 0: the loss is not finite (d0 p1, host a)",
                     "rank 1: the loss is not finite (d1 p1, host b)"))
      << "whichever rank tells it first";
  EXPECT_TRUE(again("rank 0: rank 1 (p1, host b) failed: its process is gone (p0, host a)",
                    "rank 0: rank 2 (p2, host b) failed: its process is gone (p0, host a)"));
  EXPECT_TRUE(again("ended by signal 9", "ended by signal 11"));
  EXPECT_TRUE(again("exit code 3", "exit code 205"));
  EXPECT_FALSE(again("ended by signal 9", "ended by signal 9"));
}

// Whose step is not known: the checkpoint may be of an earlier one than the records end with.
TEST(Supervision, ComparesAFailedStartOnlyWithTheStartBefore) {
  const Attempt in_step = failed(0, 5, "a rank is gone"), in_start = failed(0, 0, "a rank is gone"),
                otherwise = failed(0, 0, "no room");
  EXPECT_TRUE(decide({in_step, in_start}, 9).again);
  EXPECT_TRUE(decide({in_step, in_start, in_step}, 9).why.starts_with("step 6 has failed twice"));
  EXPECT_TRUE(decide({in_start, otherwise, in_start}, 9).again);
  EXPECT_EQ(decide({in_step, in_start, in_start}, 9).why,
            "two attempts in a row have failed before their first step for the same reason");
}

TEST(Supervision, RecordsNoStepOfAnAttemptThatCompletedNone) {
  const std::string told = to_json({failed(0, 0, "a")});
  for (const char* key : {"resumed_from_step", "last_step"})
    EXPECT_EQ(told.find(key), std::string::npos) << told;
  EXPECT_NE(to_json({failed(0, 1, "a")}).find("\"resumed_from_step\": 0"), std::string::npos);
}

TEST(Supervision, TriesRefusedInputOnce) {
  for (const Exit exit : {Exit::No, Exit::WrongInput}) {
    Attempt refused = failed(0, 0, "data.text is missing", static_cast<int>(exit));
    EXPECT_TRUE(decide({refused}, 9).again) << "the launcher's exit code";
    refused.complained = true;
    EXPECT_FALSE(decide({refused}, 9).again);
    refused.steps = failed(0, 2, "").steps;
    EXPECT_TRUE(decide({refused}, 9).again) << "what has done steps was not refused";
  }
}

// Such as a lock that a dying rank holds, or a directory that is not there yet.
TEST(Supervision, TriesRefusedInputAgainWhereAnAttemptHasCompletedAStep) {
  Attempt refused = failed(0, 0, "runs/x is in use", static_cast<int>(Exit::WrongInput));
  refused.complained = true;
  std::vector<Attempt> attempts{failed(0, 5, "a rank is gone")};
  std::vector<Seconds> pauses;
  for (int i = 0; i < 3; ++i) {
    attempts.push_back(refused);
    EXPECT_TRUE(decide(attempts, 3 + i).again);
    pauses.push_back(decide(attempts, 9).pause);
  }
  EXPECT_EQ(pauses, (std::vector<Seconds>{2, 4, 8}));
  EXPECT_EQ(decide(attempts, 3).why, "--restarts 3 are used up");
  EXPECT_FALSE(decide({failed(0, 0, "another"), refused}, 9).again);
}

// Such as a lock that a lost node holds, on a run that an earlier supervision has begun.
TEST(Supervision, TriesAgainARefusalThatMayPass) {
  Attempt refused = failed(0, 0, "runs/x is in use", static_cast<int>(Exit::WrongInput));
  refused.complained = refused.may_pass = true;
  std::vector<Attempt> attempts;
  std::vector<Seconds> pauses;
  for (int i = 0; i < 3; ++i) {
    attempts.push_back(refused);
    pauses.push_back(decide(attempts, 9).pause);
  }
  EXPECT_EQ(pauses, (std::vector<Seconds>{1, 2, 4}));
  EXPECT_EQ(decide(attempts, 2).why, "--restarts 2 are used up");
}

TEST(Supervision, TakesARunWhoseResultNobodyReadsForDone) {
  EXPECT_TRUE(failed(0, 4, kUnprinted).good());
  EXPECT_FALSE(failed(0, 4, "no space left").good());
}

// Of Open MPI itself, where its ranks were ended.
TEST(Supervision, TriesAgainWhereTheLaunchersExitCodeIsThatOfARefusal) {
  Attempt ended = failed(0, 0, "rank 1: ended by the launcher (p1, host n3)", static_cast<int>(Exit::No));
  ended.complained = true;
  EXPECT_TRUE(decide({ended}, 9).again);
}

TEST(Supervision, PausesLongerWhileNoStepIsGained) {
  std::vector<Attempt> attempts;
  std::vector<Seconds> pauses;
  for (int i = 0; i < 9; ++i) {
    attempts.push_back(failed(0, 2, std::string("reason ") + static_cast<char>('a' + i)));
    pauses.push_back(decide(attempts, 99).pause);
  }
  EXPECT_EQ(pauses, (std::vector<Seconds>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
  attempts.push_back(failed(0, 3, "gained"));
  EXPECT_EQ(decide(attempts, 99).pause, 1);
}

TEST(Supervision, CountsEachSecondOnce) {
  std::vector<Attempt> attempts{failed(0, 6, "a"), failed(4, 10, "b", 0)};
  attempts[1].pause = 2;
  for (DoneStep& step : attempts[1].steps) {
    step.seconds = 1.1;
    step.time += 0.1 * static_cast<double>(step.step - 4);
  }
  const TimeUse use = time_use(attempts);
  EXPECT_DOUBLE_EQ(use.productive, 4 * 1 + 6 * 1.1);
  EXPECT_DOUBLE_EQ(use.recomputed, 2);
  EXPECT_DOUBLE_EQ(use.starts, 3 + 3);
  EXPECT_DOUBLE_EQ(use.checkpoints, 12 * 0.25);
  EXPECT_NEAR(use.waiting, 20 - 3 - 6 * 1.25 + 2, 1e-9);
  EXPECT_NEAR(use.other, 20 - 3 - 6 * 1.35, 1e-9);
  EXPECT_NEAR(use.all(), 20 + 20 + 2, 1e-9);
  const std::vector<Recovery> recovered = recoveries(attempts);
  ASSERT_EQ(recovered.size(), 1);
  EXPECT_NEAR(recovered[0].detect, 20 - 3 - 6 * 1.25, 1e-9);
  EXPECT_NEAR(recovered[0].restart, 2 + 3 - 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(recovered[0].load, 0.5);
  EXPECT_DOUBLE_EQ(recovered[0].first_step, 1.1);
}

TEST(Supervision, NoPartOfTheTimeIsNegativeWhenTheClockJumps) {
  std::vector<Attempt> attempts{failed(0, 6, "a")};
  for (const double jump : {-1e6, 1e6}) {
    for (DoneStep& step : attempts[0].steps) step.time += jump;
    const TimeUse use = time_use(attempts);
    for (const Seconds part : {use.waiting, use.starts, use.other}) {
      EXPECT_GE(part, 0);
      EXPECT_LE(part, 20);
    }
  }
}

TEST(Supervision, AnAttemptWithoutAStepIsAStart) {
  const TimeUse use = time_use({failed(0, 0, "a"), failed(0, 2, "b")});
  EXPECT_DOUBLE_EQ(use.starts, 20 + 3);
  EXPECT_DOUBLE_EQ(recoveries({failed(0, 1, "a"), failed(1, 1, "b"), failed(1, 3, "c")}).at(0).restart,
                   20 + 3 - 0.5);
}

TEST(Supervision, ReadsTheLastStartOfMetrics) {
  const std::string metrics =
      "{\"step\":1,\"step_s\":0.5,\"time\":7,\"start\":{\"resumed_from\":0,\"load_s\":0}}\n"
      "{\"step\":2,\"step_s\":0.25,\"time\":8}\n[3]\n"
      "{\"step\":3,\"step_s\":0.75,\"checkpoint_s\":0.1,\"time\":20,\"start\":{\"resumed_from\":2,"
      "\"load_s\":1.5}}\n{\"step\":4,\"step_s\":null,\"time\":22}\n{\"step\":5,";
  const Recorded recorded = recorded_in(metrics);
  EXPECT_EQ(recorded.last_step, 4);
  EXPECT_EQ(recorded.start.resumed, 2);
  EXPECT_EQ(recorded.start.load, 1.5);
  ASSERT_EQ(recorded.start.steps.size(), 2);
  EXPECT_EQ(recorded.start.steps[0].held_up, 0.1);
  EXPECT_EQ(recorded.start.steps[1].time, 22);
  EXPECT_EQ(recorded_in("").last_step, 0);
}

// The host of its first rank changes, and with it the clock; a start that ends before a step of its own
// leaves those that it went on from.
TEST(Supervision, TellsStartsApartWhateverTheirClocksSay) {
  const std::string first = "{\"step\":1,\"time\":9,\"start\":{}}\n{\"step\":2,\"time\":10}\n";
  const std::string second = "{\"step\":3,\"time\":8,\"start\":{\"resumed_from\":2}}\n";
  const Recorded before = recorded_in(first), after = recorded_in(first + second);
  EXPECT_TRUE(has_new_start(before, {}));
  EXPECT_TRUE(has_new_start(after, before));
  EXPECT_FALSE(has_new_start(after, after));
  EXPECT_FALSE(has_new_start(before, after));
  EXPECT_FALSE(has_new_start({}, after));
}

TEST(Supervision, TellsTheUseOfTimeInTheSummary) {
  const std::string summary = with_time_use("{\"steps\": 6}", to_json({failed(0, 6, "a", 0)}));
  EXPECT_NE(summary.find("\"steps\": 6"), std::string::npos);
  EXPECT_NE(summary.find("\"productive_s\": 6.0"), std::string::npos) << summary;
  EXPECT_NE(summary.find("\"attempts\": 1"), std::string::npos) << summary;
  EXPECT_EQ(with_time_use("no JSON", to_json({})), "no JSON");
  EXPECT_EQ(with_time_use("{}", "no JSON"), "{}");
}

// A complaint may name a file by bytes of another encoding, and ends where it is longest.
TEST(Supervision, RecordsAReasonThatIsNoText) {
  const std::string first = to_json({failed(0, 6, "no caf\xe9 at \xc3")});
  EXPECT_NE(first.find("no caf\xEF\xBF\xBD at \xEF\xBF\xBD\""), std::string::npos) << first;
  const std::string both = to_json({failed(6, 8, "b", 0)}, first);
  EXPECT_NE(both.find("no caf"), std::string::npos) << both;
  EXPECT_NE(with_time_use("{}", both).find("\"attempts\": 2"), std::string::npos);
}

TEST(Supervision, KeepsTheAttemptsOfAnEarlierSupervision) {
  const std::string first = to_json({failed(0, 6, "a"), failed(4, 8, "b")});
  const std::string both = to_json({failed(8, 10, "c", 0)}, first);
  EXPECT_EQ(both.find(first.substr(0, first.find("\"time\"")).substr(0, first.find("\n ]"))), 0) << both;
  for (const char* reason : {"\"a\"", "\"b\"", "\"c\""})
    EXPECT_NE(both.find(reason), std::string::npos) << both;
  const std::string summary = with_time_use("{}", both);
  EXPECT_NE(summary.find("\"attempts\": 3"), std::string::npos) << summary;
  EXPECT_NE(summary.find("\"productive_s\": 10.0"), std::string::npos) << summary;
  EXPECT_EQ(to_json({failed(0, 6, "a")}, "no JSON"), to_json({failed(0, 6, "a")}));
  EXPECT_EQ(to_json({failed(0, 6, "a")}, "{\"attempts\": 3, \"time\": []}"), to_json({failed(0, 6, "a")}));
}

}  // namespace
}  // namespace penstock::cli
