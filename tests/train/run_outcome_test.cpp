// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_outcome.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "scratch.h"

namespace penstock::train {
namespace {

// summary.json says that a run is finished, also to a start after a kill between two files.
TEST(RunOutcome, WritesItsSummaryAfterAllElse) {
  const Scratch scratch;
  const RunDirectory directory(scratch / "run", RunStart::New);
  RunOutcome outcome{.steps = 1};
  outcome.program = schedule::Program{"x", 1, {1}, std::vector<schedule::DeviceProgram>(1)};
  outcome.timelines.push_back({.step = 1, .timeline = {.devices = {{}}}});
  outcome.profiles.push_back({});
  std::vector<bool> finished;
  write_records(outcome, {}, directory,
                [&] { finished.push_back(std::filesystem::exists(directory.summary())); });
  EXPECT_EQ(finished, (std::vector<bool>{false, false, false, true}));
  for (const char* name : {"program.txt", "timeline.json", "profile.json"})
    EXPECT_TRUE(std::filesystem::exists(directory.file(name))) << name;
}

}  // namespace
}  // namespace penstock::train
