// SPDX-License-Identifier: Apache-2.0
// Schedules made for given costs, as a shell sees them: by flags, a table, a recorded run, a run file.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_program.h"
#include "schedule/generators/greedy.h"
#include "schedule/text.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

Arguments greedy(const char* command, const Arguments& more) {
  Arguments arguments{command, "--schedule", "greedy", "-p", "4", "-m", "8"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string library_csv(const schedule::StageCosts& costs, int chunks = 2) {
  schedule::Request request = schedule::request(4, 8, 1, chunks);
  request.costs = costs;
  return schedule::to_csv(schedule::make_greedy(request).schedule);
}

std::string shown_csv(const Arguments& more) {
  Arguments arguments = greedy("show", {"--format", "csv"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ending ending = program(arguments);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  return ending.out;
}

void expect_greedy_refused(const Arguments& arguments, const std::string& part) {
  const Ending ending = program(arguments);
  EXPECT_EQ(ending.exit_code, 2);
  ASSERT_EQ(ending.complaints().size(), 1) << ending.err;
  EXPECT_NE(ending.complaints().front().find(part), std::string::npos) << ending.err;
}

TEST(GreedyCommand, MakesTheLibrarysScheduleForTheFlags) {
  const auto of_all = [](Seconds seconds) { return std::vector<Seconds>(8, seconds); };
  EXPECT_EQ(shown_csv({}), library_csv({}));
  EXPECT_EQ(shown_csv({"-v", "1", "--memory-limit", "6"}), library_csv({.limit = 6}, 1));
  EXPECT_EQ(shown_csv({"--forward", "1", "--input", "1.75", "--weight", "0.5", "--transfer", "0.25",
                       "--memory-limit", "5.5"}),
            library_csv({.forward = of_all(1),
                         .input = of_all(1.75),
                         .weight = of_all(0.5),
                         .transfer = 0.25,
                         .limit = 11}));
  EXPECT_NE(shown_csv({"--weight", "0.25"}), library_csv({}));
}

TEST(GreedyCommand, SimulatesTheScheduleMadeForTheSimulatorsTimes) {
  const auto makespan = [](const char* schedule) {
    const Ending ending = program({"simulate", "--schedule", schedule, "-p", "4", "-m", "8", "--input",
                                   "1.75", "--weight", "0.5", "--transfer", "0.1", "--json"});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return Json::parse(ending.out)["makespan_s"].get<double>();
  };
  EXPECT_LE(makespan("greedy"), makespan("zb-v"));
  const Scratch scratch;
  scratch.write("greedy.csv", shown_csv({"--input", "1.75", "--weight", "0.5", "--transfer", "0.1"}));
  EXPECT_EQ(program({"check", scratch / "greedy.csv"}).exit_code, 0);
}

TEST(GreedyCommand, TakesEachStagesTimesAndRecordsFromATable) {
  const Scratch scratch;
  scratch.write("costs.txt",
                "F * * 1\nI * * 1.5\nW * * 0.5\nI 3 0 2.5\nW 0 0 0.25\nlink * * 0.25 inf\n"
                "record * * 1000000 500000 0\nrecord 0 0 3000000 0 0\n");
  schedule::StageCosts costs{.forward = std::vector<Seconds>(8, 1),
                             .input = {1.5, 1.5, 1.5, 2.5, 1.5, 1.5, 1.5, 1.5},
                             .weight = {0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
                             .transfer = 0.25};
  EXPECT_EQ(shown_csv({"--costs", scratch / "costs.txt"}), library_csv(costs));
  scratch.write("bytes.txt", scratch.read("costs.txt") + "link * * 0.05 1000\nmessage * 200\n");
  EXPECT_EQ(shown_csv({"--costs", scratch / "bytes.txt"}), library_csv(costs)) << "0.05 s and 200 bytes";
  costs.record = {3000000, 1000000, 1000000, 1000000, 1000000, 1000000, 1000000, 1000000};
  costs.limit = 12000000;
  EXPECT_EQ(shown_csv({"--costs", scratch / "costs.txt", "--memory-limit", "12MB"}), library_csv(costs));
  expect_greedy_refused(
      greedy("simulate", {"--costs", scratch / "costs.txt", "--memory-limit", "3MB"}),
      "a memory limit of 3000000 bytes lets no micro-batch through; expected at least 4000000 bytes");
  scratch.write("short.txt", "F * * 1\nB * * 2\nI * * 1\n");
  expect_greedy_refused(greedy("simulate", {"--costs", scratch / "short.txt"}), "no time for W of stage 0");
}

TEST(GreedyCommand, SaysWhereTheOrderComesFrom) {
  EXPECT_NE(program(greedy("show", {})).out.find("its order comes from: zb-v\n"), std::string::npos);
  EXPECT_NE(program(greedy("show", {"--memory-limit", "2"})).out.find("its order comes from: v-min"),
            std::string::npos);
}

TEST(GreedyCommand, RefusesMemoryAndTimesThatItCannotUse) {
  expect_greedy_refused(greedy("simulate", {"--memory-limit", "0.5"}), "expected 1 or more");
  expect_greedy_refused(greedy("simulate", {"--memory-limit", "0GiB"}), "nothing fits in 0 bytes");
  expect_greedy_refused(greedy("simulate", {"--memory-limit", "6GiB"}),
                        "--costs with a table that has records");
  expect_greedy_refused(greedy("simulate", {"--memory-limit", "much"}), "--memory-limit");
  expect_greedy_refused(greedy("show", {"--weight", "-1"}), "--weight");
  expect_greedy_refused(greedy("show", {"-v", "3"}), "v = 1 or v = 2");
  expect_greedy_refused({"show", "--schedule", "greedy", "-p", "65536", "-m", "1", "-v", "2147483647"},
                        "p·v·m·n = ");
  expect_greedy_refused({"show", "--schedule", "zb-v", "-p", "2", "-m", "4", "--input", "2"}, "only greedy");
  expect_greedy_refused({"simulate", "--schedule", "zb-v", "-p", "2", "-m", "4", "--memory-limit", "2"},
                        "greedy");
}

// A run of so many steps over threads, of a schedule without slices.
std::string recorded_run(const Scratch& scratch, const std::string& schedule, const std::string& slices) {
  scratch.write("run.toml", small_run_file(scratch));
  const Ending ending = program({"train", scratch / "run.toml", "--ranks", "2", "--schedule.name", schedule,
                                 "--schedule.slices", slices, "--output.dir", scratch / schedule});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  return scratch / schedule;
}

TEST(GreedyCommand, TakesTheTimesThatARunMeasured) {
  const Scratch scratch;
  const std::string run = recorded_run(scratch, "zb-v", "1");
  const auto simulated = [&](const char* schedule) {
    const Ending ending =
        program({"simulate", "--schedule", schedule, "-p", "2", "-m", "6", "--costs", run, "--json"});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return Json::parse(ending.out)["makespan_s"].get<double>();
  };
  EXPECT_GT(simulated("greedy"), 0);
  EXPECT_GT(simulated("v-half"), 0);
  expect_greedy_refused({"simulate", "--schedule", "greedy", "-p", "4", "-m", "8", "--costs", run},
                        "the run has 2 devices, 4 stages and 1 slice, the schedule 4 devices");
  const std::string whole = recorded_run(scratch, "slimpipe", "4");
  expect_greedy_refused(
      {"simulate", "--schedule", "greedy", "-p", "2", "-m", "4", "-v", "1", "--costs", whole},
      "no time for I of stage 0");
  expect_greedy_refused(
      {"simulate", "--schedule", "slimpipe", "-p", "2", "-m", "2", "-n", "4,2", "--costs", whole},
      "the schedule's have 2 to 4: use one number for all");
}

TEST(GreedyCommand, TrainsARunFileWithItsTimes) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Arguments greedy{"--schedule.name",    "greedy", "--schedule.slices",    "1",
                         "--schedule.forward", "[1]",    "--schedule.input",     "[1.75]",
                         "--schedule.weight",  "[0.5]",  "--schedule.in_flight", "3"};
  const auto trained = [&](const std::string& dir, Arguments more, const Arguments& schedule) {
    Arguments arguments{"train", scratch / "run.toml", "--output.dir", scratch / dir};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), schedule.begin(), schedule.end());
    const Ending ending = program(arguments);
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return ending;
  };
  const Ending two = trained("two", {"--ranks", "2"}, greedy);
  EXPECT_NE(two.out.find("at most 3 micro-batches in flight"), std::string::npos) << two.out;
  trained("one", {"--parallel.pp", "1"}, {"--schedule.name", "1f1b", "--schedule.slices", "1"});
  EXPECT_EQ(scratch.read("two/weights.safetensors"), scratch.read("one/weights.safetensors"));
}

}  // namespace
}  // namespace penstock::testing
