// SPDX-License-Identifier: Apache-2.0
// Ranks of a run under mpirun tell where they are: when one is stopped, when a user asks by file or by
// signal.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "comm/launcher.h"
#include "runs/endless_run.h"

namespace penstock::testing {
namespace {

Arguments pipeline_of(int devices) {
  return {"--parallel.pp", std::to_string(devices), "--model.layers", std::to_string(devices)};
}

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The first line that any rank prints names the rank that is stopped, though most wait for another.
TEST(FlightRecorder, NamesAStoppedRankFirst) {
  for (const std::size_t stopped : {2, 0}) {
    Arguments settings = pipeline_of(3);
    settings.insert(settings.end(), {"--train.timeout", "2"});
    EndlessRun run(3, settings);
    ASSERT_EQ(run.ranks().size(), 3);
    run.stop(stopped);
    const Ending ending = run.end();
    EXPECT_EQ(ending.exit_code, 3) << ending.err;
    const std::string number = std::to_string(stopped);
    const std::string silent = "rank " + number + " (p" + number + ", host " + comm::host_name() +
                               ") does not answer: its process is stopped";
    ASSERT_FALSE(ending.complaints().empty()) << ending.err;
    EXPECT_EQ(ending.complaints().front().find("note: " + silent), 0) << ending.err;
    EXPECT_EQ(first_line(run.file("positions.txt")).find(silent), 0);
    EXPECT_NE(ending.err.find("; " + silent), std::string::npos) << ending.err;
    EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
  }
}

TEST(FlightRecorder, AnswersAFileAndASignalWhileTheRunGoesOn) {
  EndlessRun run(2, pipeline_of(2));
  const auto expect_answer = [&](auto&& ask) {
    std::filesystem::remove(run.file("positions.txt"));
    ask();
    const Seconds until = seconds_now() + kPatience;
    while (
        (!std::filesystem::exists(run.file("positions.txt")) || std::filesystem::exists(run.file("where"))) &&
        seconds_now() < until)
      sleep_a_little();
    EXPECT_EQ(first_line(run.file("positions.txt")), "no rank has waited longer than 1.00 s");
    EXPECT_FALSE(std::filesystem::exists(run.file("where")));
    run.wait_for_steps(run.steps() + 2);
  };
  expect_answer([&] { std::ofstream(run.file("where")).flush(); });
  expect_answer([&] { kill(run.ranks().back(), SIGUSR2); });
  std::ofstream(run.file("stop")).flush();
  const Ending ending = run.end();
  EXPECT_EQ(ending.exit_code, 0);
  const Arguments told = ending.complaints();  // supervise takes no remark for the reason of a failure
  EXPECT_EQ(std::ranges::count(told, "note: no rank has waited longer than 1.00 s"), 2) << ending.err;
}

}  // namespace
}  // namespace penstock::testing
