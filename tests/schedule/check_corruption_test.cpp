// SPDX-License-Identifier: Apache-2.0
// check() against every single-cell corruption of generated schedules, ours and PyTorch's.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "base/error.h"
#include "schedule/check/check.h"
#include "schedule/corruptions.h"
#include "schedule/generators/generator.h"
#include "schedule/plain_legality.h"

namespace penstock::schedule {
namespace {

std::string first_text(const std::vector<Finding>& findings) {
  return findings.empty() ? "" : findings.front().text;
}

void expect_told(const Finding& finding, const Corruption& corruption) {
  EXPECT_FALSE(finding.text.empty()) << corruption.what;
  EXPECT_LT(finding.device, corruption.schedule.device_count());
  if (finding.position < 0) return;
  ASSERT_LT(finding.position, std::ssize(corruption.schedule.devices[finding.device]));
  EXPECT_EQ(corruption.schedule.devices[finding.device][finding.position], finding.action) << corruption.what;
}

// Compares with the plain judgement; returns how many corruptions were illegal.
int judge_corruptions(const Schedule& schedule, int device, int position) {
  int illegal = 0;
  for (const Corruption& corruption : Corruptor(schedule).at(device, position)) {
    const std::vector<Finding> findings = check(corruption.schedule);
    const bool legal = plainly_legal(corruption.schedule);
    EXPECT_EQ(findings.empty(), legal) << schedule.name << ": " << corruption.what << "\n"
                                       << to_csv(corruption.schedule) << first_text(findings);
    EXPECT_FALSE(legal && corruption.surely_illegal) << corruption.what << "\n"
                                                     << to_csv(corruption.schedule);
    for (const Finding& finding : findings) expect_told(finding, corruption);
    illegal += !legal;
  }
  return illegal;
}

int judge_every_corruption(const Schedule& schedule) {
  int illegal = 0;
  for (int device = 0; device < schedule.device_count(); ++device) {
    for (int position = 0; position < std::ssize(schedule.devices[device]); ++position) {
      illegal += judge_corruptions(schedule, device, position);
    }
  }
  return illegal;
}

std::map<std::string, Schedule> pytorch_schedules() {
  std::map<std::string, Schedule> schedules;
  for (const auto& file : std::filesystem::directory_iterator(PENSTOCK_SOURCE_DIR "/tests/data/pytorch")) {
    if (file.path().extension() != ".csv") continue;
    std::ostringstream text;
    text << std::ifstream(file.path(), std::ios::binary).rdbuf();
    schedules[file.path().stem()] = parse_csv(text.str(), file.path().stem().string());
  }
  return schedules;
}

TEST(CheckCorruptions, AreFoundInEverySmallGeneratedSchedule) {
  for (const Generator& generator : generators()) {
    int illegal = 0;
    for (const int p : {1, 2, 3}) {
      for (const int m : {1, 2, 4, 6}) {
        for (const int n : {1, 3}) {
          if (p * m * n > 18) continue;
          try {
            illegal += judge_every_corruption(generate(generator.name, request(p, m, n)));
          } catch (const InputError&) {
          }
        }
      }
    }
    EXPECT_GT(illegal, 200) << generator.name;
  }
}

TEST(CheckCorruptions, AreFoundAnywhereInLargerGeneratedSchedules) {
  std::mt19937 random(3);
  for (const Generator& generator : generators()) {
    for (const int p : {4, 8}) {
      const Schedule schedule = generate(generator.name, request(p, 2 * p));
      EXPECT_TRUE(check(schedule).empty()) << generator.name << first_text(check(schedule));
      for (int round = 0; round < 4; ++round) {
        const int device = static_cast<int>(random() % schedule.devices.size());
        judge_corruptions(schedule, device, static_cast<int>(random() % schedule.devices[device].size()));
      }
    }
  }
}

TEST(CheckCorruptions, AreFoundInEveryPytorchSchedule) {
  for (const auto& [name, schedule] : pytorch_schedules()) {
    if (name.starts_with("1f1b") || schedule.devices[0].size() > 40) continue;
    EXPECT_GT(judge_every_corruption(schedule), 0) << name;
  }
}

TEST(PytorchSchedules, AreAllAcceptedExcept1f1b) {
  int accepted = 0;
  for (const auto& [name, schedule] : pytorch_schedules()) {
    if (name.starts_with("1f1b")) continue;
    EXPECT_TRUE(check(schedule).empty()) << name << ": " << first_text(check(schedule));
    EXPECT_TRUE(plainly_legal(schedule)) << name;
    ++accepted;
  }
  EXPECT_EQ(accepted, 41);
}

TEST(PytorchSchedules, Of1f1bNumberTheLastDevicesForwardsFrom1) {
  int found = 0;
  for (const auto& [name, schedule] : pytorch_schedules()) {
    if (!name.starts_with("1f1b")) continue;
    const Action first = forward(schedule.stages - 1, 0);
    const std::vector<Finding> findings = check(schedule);
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.rule == Rule::Missing && finding.action == first;
    })) << name;
    ++found;
  }
  EXPECT_EQ(found, 7);
}

TEST(PytorchSchedules, ComeOutAsTheyWereRead) {
  for (const auto& file : std::filesystem::directory_iterator(PENSTOCK_SOURCE_DIR "/tests/data/pytorch")) {
    if (file.path().extension() != ".csv") continue;
    std::ostringstream text;
    text << std::ifstream(file.path(), std::ios::binary).rdbuf();
    std::string expected = text.str();
    std::erase(expected, '\r');
    EXPECT_EQ(to_csv(parse_csv(text.str(), "a")), expected) << file.path();
  }
}

}  // namespace
}  // namespace penstock::schedule
