// SPDX-License-Identifier: Apache-2.0
// Schedules made for given costs: whose, and within which memory.
#include <gtest/gtest.h>

#include "base/option_text.h"
#include "run/changed.h"
#include "run/costs.h"
#include "run/memory.h"
#include "schedule/generators/greedy.h"

namespace penstock::run {
namespace {

Options greedy_options(const std::function<void(Options&)>& change) {
  return changed([&](Options& o) {
    o.model.shape.layers = 8;
    o.parallel.pp = 4;
    o.train.batch = 12;
    o.schedule.name = "greedy";
    change(o);
  });
}

TEST(ChooseOrder, TakesTheGivenTimesAndMemory) {
  const run::Run run = resolve(greedy_options([](Options& o) {
    o.schedule.forward = {1};
    o.schedule.input = {1, 2, 1, 2, 1, 2, 1, 2};
    o.schedule.weight = {0.5};
    o.schedule.transfer = 0.25;
    o.schedule.in_flight = 3.5;
  }));
  schedule::Request request = schedule::request(4, 12, 1, 2);
  request.costs = {.forward = std::vector<Seconds>(8, 1),
                   .input = {1, 2, 1, 2, 1, 2, 1, 2},
                   .weight = std::vector<Seconds>(8, 0.5),
                   .transfer = 0.25,
                   .limit = 7};
  EXPECT_EQ(run.schedule.devices, schedule::make_greedy(request).schedule.devices);
  EXPECT_NE(run.schedule.devices, schedule::generate("greedy", schedule::request(4, 12)).devices);
  EXPECT_FALSE(chooses_by_speed(run.options));
}

TEST(ChooseOrder, TakesTimesOfTheMachineWhereNoneAreGiven) {
  const Options asked = greedy_options([](Options&) {});
  EXPECT_TRUE(chooses_by_speed(asked));
  Machine slow_links;
  slow_links.hardware.node.link_gbps = 1e-3;
  const run::Run run = resolve(asked), slow = resolve(asked, slow_links);
  const sim::AnalyticCosts costs = costs_of(run, run.machine.hardware);
  ASSERT_EQ(run.options.schedule.forward.size(), 8);
  for (int stage = 0; stage < 8; ++stage) {
    const schedule::Op forward{.key = schedule::make_key(stage), .kind = schedule::OpKind::Forward};
    EXPECT_EQ(run.options.schedule.forward[stage], costs.seconds(0, 0, forward));
  }
  EXPECT_GT(slow.options.schedule.transfer, run.options.schedule.transfer);
  EXPECT_EQ(run.options.schedule.in_flight, 4);
  EXPECT_NE(run.note(Topic::Schedule).find("order from "), std::string::npos);
}

// So ranks that have the same configuration have the same program, and a run's file makes it again.
TEST(ChooseOrder, WritesWhatItTookIntoTheConfiguration) {
  const run::Run run = resolve(greedy_options([](Options& o) { o.memory.limit = "1 GiB"; }));
  Machine other;
  other.hardware.node.link_gbps = 1e-3;
  const run::Run again = resolve(run.options, other);
  EXPECT_EQ(again.schedule, run.schedule);
  EXPECT_EQ(printed(again.options), printed(run.options));
}

TEST(ChooseOrder, HoldsWhatFitsTheMemoryLimit) {
  const auto with = [](double in_flight, const std::string& limit) {
    return resolve(greedy_options([&](Options& o) {
      o.data.seq_len = 4096;
      o.train.batch = 24;
      o.schedule.in_flight = in_flight;
      o.memory.limit = limit;
    }));
  };
  const auto bytes_of = [](const run::Run& run) {
    return run.predicted[fullest_device(run.predicted)].total();
  };
  for (const int wanted : {2, 3, 5, 8}) {
    const Bytes enough = bytes_of(with(wanted, ""));
    const run::Run made = with(0, std::to_string(enough) + " B");
    EXPECT_GE(made.options.schedule.in_flight, wanted);
    EXPECT_LE(bytes_of(made), enough);
    EXPECT_TRUE(wanted == 8 || made.options.schedule.in_flight < 8);
  }
}

TEST(ChooseOrder, RefusesTimesThatDoNotFitTheScheduleByTheirKey) {
  const auto refused = [](const std::function<void(Options&)>& change) {
    return failure<InputError>([&] { resolve(greedy_options(change)); });
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refused([](Options& o) { o.schedule.forward = {1}; }), "give all three, or none");
  expect(refused([](Options& o) {
           o.schedule.forward = o.schedule.weight = {1};
           o.schedule.input = {1, 2, 3};
         }),
         "schedule.input has 3 times; expected one, or one for each of 8 stages");
  expect(refused([](Options& o) { o.schedule.transfer = 1; }), "schedule.transfer = 1");
  expect(refused([](Options& o) { o.schedule.in_flight = 0.5; }), "schedule.in_flight = 0.5");
  expect(refused([](Options& o) {
           o.schedule.name = "zb-v";
           o.schedule.in_flight = 2;
         }),
         "schedule.in_flight applies to schedules made for given costs");
}

}  // namespace
}  // namespace penstock::run
