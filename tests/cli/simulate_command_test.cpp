// SPDX-License-Identifier: Apache-2.0
// penstock simulate as a shell sees it: what it refuses, and what its tables and its JSON hold.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "cli/run_program.h"

namespace penstock::cli {
namespace {

using penstock::testing::Arguments;
using penstock::testing::Ending;
using penstock::testing::lines_of;
using penstock::testing::small_run_file;
using Json = nlohmann::json;

Ending simulate(Arguments arguments) {
  arguments.insert(arguments.begin(), {PENSTOCK_PROGRAM, "simulate"});
  return penstock::testing::run_program(arguments);
}

Ending simulate_schedule(const Arguments& more) {
  Arguments arguments{"--schedule", "slimpipe", "-p", "2", "-m", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return simulate(arguments);
}

void expect_input_refused(const Ending& ending, const std::string& part) {
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_EQ(ending.out, "");
  ASSERT_EQ(ending.complaints().size(), 1) << ending.err;
  EXPECT_NE(ending.complaints().front().find(part), std::string::npos) << ending.err;
}

TEST(SimulateCommand, PrintsOneJsonObjectWithTheKeysOfEachDeviceAndNothingElse) {
  const Ending ending = simulate_schedule({"-n", "4", "--json"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Json result = Json::parse(ending.out);
  EXPECT_EQ(result["makespan_s"], 2 * 4 * 3 + 3);  // m n (F + B) + (p - 1) (F + B)
  EXPECT_DOUBLE_EQ(result["bubble_fraction"], 1.0 / 9);
  EXPECT_TRUE(result["span_bubble_fraction"].is_number());
  ASSERT_EQ(result["devices"].size(), 2);
  for (const char* key : {"busy_s", "peak_in_flight", "peak_in_flight_until_input", "peak_bytes"}) {
    EXPECT_TRUE(result["devices"][1][key].is_number()) << key;
  }
}

TEST(SimulateCommand, TakesSlicesOfEachMicroBatch) {
  for (const auto& [chunks, bubble] :
       {std::pair{"1", 1.0 / 13}, {"2", 1.0 / 25}}) {  // (p - 1) / (Σ n·v + p - 1)
    const Ending ending = simulate_schedule({"-n", "8,4", "-v", chunks, "--json"});
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_DOUBLE_EQ(Json::parse(ending.out)["bubble_fraction"], bubble);
  }
  expect_input_refused(simulate_schedule({"-n", "8,4,16"}), "-n lists 3 micro-batches; -m 2 needs as many");
}

// Four of a device's records stay, whatever their size (memory.md).
TEST(SimulateCommand, OffloadsAShareOfTheRecordsOfACostTable) {
  const Scratch scratch;
  scratch.write("costs", "F * * 1\nB * * 2\nOFFLOAD * * 0.5\nRELOAD * * 0.5\nrecord * * 1024000 0 0\n");
  for (const auto& [share, records] : {std::pair{"1", 4}, {"0.5", 6}, {"0", 8}}) {
    const Ending ending = simulate({"--schedule", "1f1b", "-p", "8", "-m", "16", "--costs", scratch / "costs",
                                    "--offload", share, "--json"});
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    EXPECT_EQ(Json::parse(ending.out)["devices"][0]["peak_bytes"], 1024000 * records) << share;
  }
}

// F, 1.5 s to the next device, F, B, 1.5 s back, B.
TEST(SimulateCommand, MovesTheMessagesOfACostTableOverItsLinks) {
  const Scratch scratch;
  scratch.write("costs", "F * * 1\nB * * 2\nlink * * 0.5 2000\nmessage * 2000\n");
  const Ending ending =
      simulate({"--schedule", "1f1b", "-p", "2", "-m", "1", "--costs", scratch / "costs", "--json"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_DOUBLE_EQ(Json::parse(ending.out)["makespan_s"], 6 + 2 * 1.5);
}

// One device, one micro-batch.
constexpr const char* kCsv = "0F0,0B0\n";

TEST(SimulateCommand, RefusesToWriteOverWhatItReadsOrWrites) {
  const Scratch scratch;
  const std::string schedule = scratch / "s.csv", page = scratch / "page";
  ASSERT_EQ(simulate_schedule({"--report", page}).exit_code, 0);
  scratch.write("s.csv", kCsv);
  for (const char* command : {"simulate", "report"}) {
    const std::string output = command == std::string("report") ? "-o" : "--report";
    expect_input_refused(
        testing::program(
            {command, schedule, output,
             scratch / "../" + std::filesystem::path(scratch.path()).filename().string() + "/s.csv"}),
        "is read by this command");
    expect_input_refused(testing::program({command, schedule, output, page, "--trace", page}),
                         " is also the file of ");
  }
  EXPECT_EQ(scratch.read("s.csv"), kCsv);
}

// Of a run's directory only what is drawn of it may be drawn anew.
TEST(SimulateCommand, RefusesToWriteOverARunsFiles) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "run");
  scratch.write("run/metrics.jsonl", "kept");
  scratch.write("run/trace.json", "drawn");
  expect_input_refused(simulate({scratch / "run", "--trace", scratch / "run/metrics.jsonl"}),
                       "is read by this command");
  EXPECT_EQ(scratch.read("run/metrics.jsonl"), "kept");
  const Ending drawn = simulate({scratch / "run", "--trace", scratch / "run/trace.json"});
  EXPECT_EQ(drawn.err.find("is read by this command"), std::string::npos) << drawn.err;
}

TEST(SimulateCommand, TakesOneChangeAtATime) {
  const Scratch scratch;
  scratch.write("s.csv", kCsv);
  EXPECT_EQ(simulate({"--change", "device:0=2", "--change", "kind:F=2", scratch / "s.csv"}).exit_code, 0);
}

TEST(SimulateCommand, RefusesSizesBesideAFile) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  scratch.write("s.csv", kCsv);
  for (const char* file : {"run.toml", "s.csv"}) {
    for (const char* flag : {"-p", "-m", "-n", "-v", "--group"})
      expect_input_refused(simulate({scratch / file, flag, "3"}),
                           "-p, -m, -n, -v and --group need --schedule");
  }
}

// Of a run in which every time was a thousandth of what it was, all times are.
TEST(SimulateCommand, SplitsTheWaitsOfAMeasuredStepByItsOwnTimesAlone) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending trained = testing::program({"train", "--ranks", "2", scratch / "run.toml", "--output.dir",
                                           scratch / "run", "--parallel.layers", "[3, 1]",
                                           "--schedule.vocabulary_parallel", "true", "--train.steps", "2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  constexpr double kFaster = 1e-3;
  const auto measured = [&] {
    const Ending ending = simulate({scratch / "run", "--json"});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return Json::parse(ending.out)["measured"];
  };
  const Json slow = measured();
  Json timeline = Json::parse(scratch.read("run/timeline.json"));
  for (Json& step : timeline["steps"]) {
    for (Json& device : step["devices"]) {
      for (Json& op : device) {
        for (Json& time : op) time = time.get<double>() * kFaster;
      }
    }
  }
  scratch.write("run/timeline.json", timeline.dump());
  const Json quick = measured();
  double imbalance = 0;
  for (std::size_t device = 0; device < 2; ++device) {
    const Json &before = slow["devices"][device]["idle_by_cause_s"],
               &after = quick["devices"][device]["idle_by_cause_s"];
    for (const auto& [cause, seconds] : before.items())
      EXPECT_NEAR(after[cause], kFaster * seconds.get<double>(), 1e-9) << cause;
    imbalance += before["imbalance"].get<double>();
  }
  EXPECT_GT(imbalance, 0);
}

TEST(SimulateCommand, NamesTheSweptCountThatIsTooGreat) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending ending = simulate({scratch / "run.toml", "--sweep", "micro_batches=2147483647",
                                  "--train.micro_batch", "1000000", "--parallel.dp", "65536"});
  EXPECT_NE(ending.err.find("micro_batches=2147483647: 2147483647 micro-batches of 1000000 sequences on "
                            "65536 replicas are more than 1000000000"),
            std::string::npos)
      << ending.err;
}

TEST(SimulateCommand, SweepsSlicesWithVisitsOfEqualWork) {
  const Ending ending = simulate_schedule({"--vocabulary-parallel", "--visit", "1", "--forward", "2",
                                           "--backward", "4", "--sweep", "slices=1,2,4", "--json"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Json rows = Json::parse(ending.out);
  int slices = 1;
  for (const Json& row : rows.is_array() ? rows : rows["rows"]) {
    EXPECT_DOUBLE_EQ(row["makespan_s"],
                     2 * 6.0 + 6.0 / slices + 2 * 1.0);  // m (F + B) + (p - 1)(F + B)/n + m visits
    slices *= 2;
  }
  EXPECT_EQ(slices, 8);
}

TEST(SimulateCommand, RefusesTimesThatAddUpToInfinity) {
  expect_input_refused(simulate_schedule({"--forward", "1e308"}), "more seconds than a number can hold");
  expect_input_refused(simulate_schedule({"--transfer", "1e308"}), "more seconds than a number can hold");
  const Scratch scratch;  // the step's time is finite, the sum over devices is not
  scratch.write("costs", "F * * 1\nB * * 2\nSTEP * * 1e308\n");
  expect_input_refused(simulate({"--schedule", "1f1b", "-p", "2", "-m", "2", "--costs", scratch / "costs"}),
                       "more seconds than a number can hold");
}

TEST(SimulateCommand, RefusesFlagsThatItWouldHaveNoUseFor) {
  expect_input_refused(simulate_schedule({"--attention", "2"}), "--attention");
  expect_input_refused(simulate_schedule({"--plot", "plot.svg"}), "--sweep");
  expect_input_refused(simulate_schedule({"--visit", "0.5"}), "--vocabulary-parallel");
  expect_input_refused(simulate_schedule({"--sweep", "slices=1,2", "--report", "page.html"}), "--plot");
  expect_input_refused(simulate_schedule({"--copy", "0.5"}), "--offload");
  expect_input_refused(simulate_schedule({"--exchange-limit", "3"}), "--exchange");
  expect_input_refused(simulate_schedule({"-n", "4", "--exchange", "paired"}), "--attention-share above 0");
  expect_input_refused(simulate_schedule({"-n", "4", "--stage-layers", "2"}), "--exchange");
  const Scratch scratch;
  scratch.write("costs", "F * * 1\nB * * 2\n");
  expect_input_refused(simulate_schedule({"-n", "4", "--exchange", "paired", "--costs", scratch / "costs"}),
                       "--costs does not say which part of an action is attention");
  expect_input_refused(simulate_schedule({"--costs", scratch / "costs", "--forward", "3"}), "keep one");
  EXPECT_EQ(simulate_schedule({"--costs", scratch / "costs", "--sweep", "micro_batches=1,2"}).exit_code, 0);
}

double makespan_of_row(const Ending& ending, std::size_t row = 0) {
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  return Json::parse(ending.out)["rows"][row]["makespan_s"];
}

TEST(SimulateCommand, SweepsSecondsOfAMicroBatchOnADeviceWhateverTheChunks) {
  const Arguments zb_v{"--schedule", "zb-v", "-p", "4", "-m", "8", "--sweep", "micro_batches=8", "--json"};
  Arguments two = zb_v;
  two.insert(two.end(), {"-v", "2"});
  EXPECT_EQ(makespan_of_row(simulate(zb_v)), makespan_of_row(simulate(two)));
}

TEST(SimulateCommand, SweepsMicroBatchesOfAPipelineWhateverTheReplicas) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto swept = [&](const char* replicas, const char* sequences) {
    return makespan_of_row(
        simulate({scratch / "run.toml", "--hardware", "assumed", "--sweep", "micro_batches=4", "--json",
                  "--parallel.dp", replicas, "--train.micro_batch", sequences}));
  };
  const double one = swept("1", "1");
  EXPECT_NEAR(swept("2", "1") / one, 1, 0.2) << "the sums of gradients apart";
  EXPECT_NEAR(swept("1", "2") / one, 2, 0.5) << "twice the tokens";
}

TEST(SimulateCommand, AValueThatDoesNotFitIsARowOfTheSweep) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto swept = [&](const std::string& limits) {
    return simulate({scratch / "run.toml", "--hardware", "assumed", "--memory.policy", "auto", "--sweep",
                     "memory.limit=" + limits, "--json"});
  };
  const Ending ending = swept("1KiB,1GiB");
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Json rows = Json::parse(ending.out)["rows"];
  EXPECT_TRUE(rows[0]["refused"].get<std::string>().starts_with("memory.limit = \"1KiB\": device "));
  EXPECT_GT(rows[1]["makespan_s"], 0);
  EXPECT_EQ(swept("1KiB,2KiB").exit_code, 1) << "no answer, as for one of them alone";
}

TEST(SimulateCommand, TellsWhatTheRunFileLeftOpen) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending ending = simulate(
      {scratch / "run.toml", "--hardware", "assumed", "--schedule.slices", "0", "--memory.policy", "auto"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find(" in simulation, "), std::string::npos) << ending.out;
  EXPECT_NE(ending.out.find("\nmemory policy none: memory.limit sets no limit"), std::string::npos)
      << ending.out;
}

TEST(SimulateCommand, RefusesWhatIfsThatWouldChangeNothing) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Arguments assumed{scratch / "run.toml", "--hardware", "assumed"};
  const auto with_flag = [&](const char* flag) { return testing::with(assumed, {flag, "1.5"}); };
  expect_input_refused(simulate(with_flag("--expert-load")), "there are expert ranks only with parallel.ep");
  const Arguments experts{"--model.experts", "4", "--model.experts_per_token", "2"};
  for (const char* ranks : {"2", "4"}) {
    expect_input_refused(simulate(testing::with(testing::with(assumed, experts),
                                                {"--expert-load", "2.5", "--parallel.ep", ranks})),
                         "at most 2.0");
  }
  expect_input_refused(simulate(with_flag("--copy-gbps")), "there are copies only with memory.offload");
  const Arguments swept{"--sweep", "memory.offload=0,1"};
  EXPECT_EQ(simulate(testing::with(with_flag("--copy-gbps"), swept)).exit_code, 0);
  expect_input_refused(simulate(testing::with(with_flag("--expert-load"), swept)),
                       "there are expert ranks only with parallel.ep");
}

TEST(SimulateCommand, SaysWhichMixturesTrainRefusesAndWhichLoadItAssumes) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto mixture = [&](const Arguments& more) {
    const Ending ending =
        simulate(testing::with({scratch / "run.toml", "--hardware", "assumed", "--model.experts", "4",
                                "--model.experts_per_token", "2", "--parallel.dp", "2", "--parallel.ep", "2"},
                               more));
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return ending.out;
  };
  const auto says = [&](const Arguments& more, const std::string& words) {
    EXPECT_NE(mixture(more).find("\n" + words), std::string::npos) << mixture(more);
  };
  says({"--moe.rows_limit", "5"}, "train refuses this run: moe.rows_limit = 5: ");
  says({"--moe.balance_over", "step", "--moe.balance_coefficient", "0.1"},
       "train refuses this run: moe.balance_over = \"step\" needs all forwards");
  says({"--moe.skew", "1"}, "an even load is assumed, not that of moe.skew; --expert-load gives");
  EXPECT_EQ(mixture({"--moe.skew", "1", "--expert-load", "1.5"}).find("even load"), std::string::npos);
  const auto notes = [&](const Json& of) { return of["notes"].dump(); };
  EXPECT_NE(notes(Json::parse(mixture({"--json", "--moe.skew", "1"}))).find("even load"), std::string::npos);
  EXPECT_EQ(notes(Json::parse(mixture({"--json"}))), "[]");
  const Json swept = Json::parse(mixture({"--json", "--sweep", "moe.rows_limit=5,0"}));
  EXPECT_NE(notes(swept["rows"][0]).find("train refuses this run"), std::string::npos) << swept;
  EXPECT_EQ(notes(swept["rows"][1]), "[]");
}

// Where replicas share their weights out, gathered weights and gradients are of a device's peak.
TEST(SimulateCommand, CountsWhatIsGathered) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending ending = simulate({scratch / "run.toml", "--hardware", "assumed", "--json", "--parallel.dp",
                                  "2", "--parallel.shard", "weights"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const Json held = Json::parse(ending.out)["devices"][0]["peak_bytes_by_category"];
  EXPECT_GT(held["weights"], 0);
  EXPECT_GT(held["gradients"], 0);
}

TEST(SimulateCommand, RefusesSecondsForARunFileAndSweepsOfWhatHasNoSettings) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  scratch.write("one.csv", "0F0,0B0\n");
  const std::string run_file = scratch / "run.toml";
  expect_input_refused(simulate({run_file, "--forward", "2"}), "--forward");
  expect_input_refused(simulate({run_file, "--costs", "costs.json"}), "--costs");
  expect_input_refused(simulate({run_file, "--schedule", "1f1b"}), "not both");
  expect_input_refused(simulate({scratch / "one.csv", "--sweep", "slices=1,2"}), "--sweep");
}

TEST(SimulateCommand, SweepsListsWholeAndTextsInQuotes) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const auto values = [&](const std::string& setting) {
    const Ending ending = simulate({scratch / "run.toml", "--hardware", "assumed", "--schedule.slices", "1",
                                    "--sweep", setting, "--json"});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    std::vector<std::string> of_rows;
    const Json swept = Json::parse(ending.out);
    for (const Json& row : swept["rows"]) of_rows.push_back(row["value"]);
    return of_rows;
  };
  EXPECT_EQ(values("parallel.layers=[1, 3],[2,2]"), (std::vector<std::string>{"[1, 3]", "[2,2]"}));
  EXPECT_EQ(values("schedule.name=\"1f1b\", gpipe"), (std::vector<std::string>{"\"1f1b\"", "gpipe"}));
}

TEST(SimulateCommand, SweepsOneNumberOfSlicesForAllMicroBatches) {
  expect_input_refused(simulate_schedule({"-n", "8,4", "--sweep", "chunks=1,2"}),
                       "-n lists 2 micro-batches; --sweep");
}

TEST(SimulateCommand, NamesNoSingleScheduleForASweepOverSchedules) {
  const Scratch scratch;
  scratch.write("run.toml", "[parallel]\npp = 2\n[schedule]\nslices = 1\n");
  const Ending ending =
      simulate({scratch / "run.toml", "--hardware", "assumed", "--sweep", "schedule.name=1f1b,gpipe"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("\nseveral schedules\n"), std::string::npos) << ending.out;
}

TEST(SimulateCommand, SaysOfASweepWhereItsSpeedsComeFromAndWhatTheRunFileLeftOpen) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Arguments one{scratch / "run.toml", "--hardware", "assumed", "--memory.policy", "auto"};
  const Arguments swept = testing::with(one, {"--sweep", "slices=1,2"});
  const std::vector<std::string> lines = lines_of(simulate(one).out), table = lines_of(simulate(swept).out);
  ASSERT_GT(table.size(), 2);
  EXPECT_EQ(table[0], lines[0]);
  EXPECT_TRUE(table[0].starts_with("speeds   assumed")) << table[0];
  EXPECT_EQ(table[1], lines[1]) << "the policy, once for both rows";
  EXPECT_EQ(Json::parse(simulate(testing::with(swept, {"--json"})).out)["speeds"],
            Json::parse(simulate(testing::with(one, {"--json"})).out)["speeds"]);
}

TEST(SimulateCommand, GivesEachRowOfASweepACellForEachColumn) {
  const Ending ending = simulate_schedule({"--sweep", "slices=2,4"});
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const std::vector<std::string> lines = lines_of(ending.out);
  ASSERT_EQ(lines.size(), 4) << ending.out;
  // In flight at n = 4: n + 2(p - 1) slices, which are 1.5 micro-batches.
  EXPECT_TRUE(lines[1].ends_with("records in flight  in flight, in micro-batches  peak saved")) << ending.out;
  EXPECT_TRUE(std::regex_search(lines[3], std::regex(" 6 +1\\.50 +0 B$"))) << ending.out;
}

}  // namespace
}  // namespace penstock::cli
