// SPDX-License-Identifier: Apache-2.0
#include "run/record/step_timeline.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"

namespace penstock::run {
namespace {

schedule::Program two_devices() { return lower(generate("1f1b", schedule::request(2, 3, 1, 0)), {}); }

std::vector<schedule::Event> events_of(const schedule::DeviceProgram& device, double offset) {
  std::vector<schedule::Event> events;
  for (std::uint32_t op = 0; op < device.ops.size(); ++op)
    events.push_back({.start = offset + op / 3.0, .end = offset + (op + 1) / 3.0});
  return events;
}

// Of a pipeline of two devices, three ranks each.
StepTimeline timeline_of(const schedule::Program& program) {
  StepTimeline step{.step = 7, .timeline = {}};
  for (const auto& device : program.devices) {
    step.timeline.devices.push_back(events_of(device, 0));
    for (const double offset : {0.0, 0.1, 0.7}) step.ranks.push_back(events_of(device, offset));
  }
  return step;
}

TEST(StepTimeline, KeepsTheOpsOfEveryRank) {
  const auto program = two_devices();
  const StepTimeline wanted = timeline_of(program);
  const auto read = parse_timelines(to_json({wanted}), program, "timeline.json");
  ASSERT_EQ(read.size(), 1);
  ASSERT_EQ(read[0].ranks.size(), 6);
  for (std::size_t rank = 0; rank < 6; ++rank) {
    ASSERT_EQ(read[0].ranks[rank].size(), wanted.ranks[rank].size());
    for (std::size_t op = 0; op < wanted.ranks[rank].size(); ++op) {
      EXPECT_EQ(read[0].ranks[rank][op].start, wanted.ranks[rank][op].start);
      EXPECT_EQ(read[0].ranks[rank][op].end, wanted.ranks[rank][op].end);
    }
  }
}

TEST(StepTimeline, OfOneRankADeviceHasNoRanks) {
  const auto program = two_devices();
  StepTimeline step = timeline_of(program);
  step.ranks.clear();
  const std::string json = to_json({step});
  EXPECT_EQ(json.find("ranks"), std::string::npos);
  EXPECT_TRUE(parse_timelines(json, program, "timeline.json")[0].ranks.empty());
}

TEST(StepTimeline, RefusesMoreDevicesThanTheProgramHas) {
  const auto program = two_devices();
  StepTimeline step = timeline_of(program);
  step.timeline.devices.push_back(step.timeline.devices.front());
  EXPECT_EQ(failure<InputError>([&] { parse_timelines(to_json({step}), program, "timeline.json"); }),
            "timeline.json: step 7: has 3 devices; the program has 2");
}

TEST(StepTimeline, RefusesRanksThatAreNotAllThere) {
  const auto program = two_devices();
  const auto refusal = [&](const StepTimeline& step) {
    return failure<InputError>([&] { parse_timelines(to_json({step}), program, "timeline.json"); });
  };
  StepTimeline step = timeline_of(program);
  step.ranks.pop_back();
  EXPECT_EQ(refusal(step),
            "timeline.json: step 7: \"ranks\" is not a list with as many ranks for each of 2 devices");
  step = timeline_of(program);
  step.ranks[4].pop_back();
  EXPECT_NE(refusal(step).find("timeline.json: step 7, rank 4: has "), std::string::npos);
  step = timeline_of(program);
  std::swap(step.ranks[5][1].start, step.ranks[5][1].end);
  EXPECT_EQ(refusal(step), "timeline.json: step 7, rank 5: op 1 ends before it starts");
  step = timeline_of(program);
  step.ranks[5][0].start = -1;
  EXPECT_EQ(refusal(step), "timeline.json: step 7, rank 5: op 0 starts before its step");
}

}  // namespace
}  // namespace penstock::run
