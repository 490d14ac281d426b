// SPDX-License-Identifier: Apache-2.0
// Offloading as a shell sees it: drawn, checked, simulated, trained, fitted to a limit, refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

Ending call(Arguments arguments) {
  arguments.insert(arguments.begin(), PENSTOCK_PROGRAM);
  return run_program(arguments, 120);
}

const Arguments kSlimpipe{"--schedule", "slimpipe", "-p", "4", "-m", "4", "-n", "8"};

void expect_refused(const Ending& ending, const std::string& part) {
  EXPECT_EQ(ending.exit_code, 2) << ending.err;
  EXPECT_EQ(ending.out, "");
  EXPECT_NE(ending.err.find(part), std::string::npos) << ending.err;
}

TEST(OffloadCommand, ShowsAProgramThatCheckFindsLegal) {
  const Scratch scratch;
  const Ending shown = call(with({"show", "--program", "--offload", "0.5"}, kSlimpipe));
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("0OFFLOAD0.0 bytes 500032 after"), std::string::npos);
  EXPECT_NE(shown.out.find("0RELOAD0.0 bytes 500032 after"), std::string::npos);
  scratch.write("mine.program", shown.out);
  EXPECT_EQ(call({"check", "--program", scratch / "mine.program"}).exit_code, 0);
}

TEST(OffloadCommand, FindsTheReloadThatIsMissing) {
  const Scratch scratch;
  const std::string program = call(with({"show", "--program", "--offload", "1"}, kSlimpipe)).out;
  std::string without;
  for (const std::string& line : lines_of(program)) {
    // The number stays, the op becomes another: a RELOAD that is no longer there.
    const std::size_t reload = line.find("RELOAD0.7");
    without += (reload == std::string::npos ? line : line.substr(0, reload) + "OFFLOAD0.7") + "\n";
  }
  scratch.write("mine.program", without);
  const Ending checked = call({"check", "--program", scratch / "mine.program"});
  EXPECT_EQ(checked.exit_code, 1) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("OFFLOAD0.7"), std::string::npos) << checked.out;
}

TEST(OffloadCommand, DrawsTheCopiesUnderEachDevice) {
  const Ending drawn = call(with({"show", "--format", "svg", "--offload", "1"}, kSlimpipe));
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_NE(drawn.out.find(">copy out<"), std::string::npos);
  EXPECT_NE(drawn.out.find(">copy in<"), std::string::npos);
}

TEST(OffloadCommand, SimulatesTheLineOfPeakMemory) {
  for (const auto& [share, leaving] : {std::pair{"0", 0}, {"0.25", 250'000}, {"1", 1'000'000}}) {
    const Ending ending = call(with({"simulate", "--json", "--offload", share}, kSlimpipe));
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    if (leaving == 0) continue;
    const int in_flight = 8 + 2 * 3;
    const Json device = Json::parse(ending.out)["devices"][0];
    EXPECT_NEAR(device["peak_bytes"].get<double>(), in_flight * 1e6 - (in_flight - 4.0) * leaving, 640);
    EXPECT_GE(device["peak_away_bytes"].get<double>(), (in_flight - 4.0) * leaving - 640);
  }
}

TEST(OffloadCommand, RefusesSharesAndSpeedsThatAreNone) {
  for (const char* share : {"1.5", "-0.1", "nan", "half"}) {
    expect_refused(call(with({"show", "--offload", share}, kSlimpipe)), "must be a number from 0 to 1");
  }
  expect_refused(call(with({"simulate", "--copy", "-1"}, kSlimpipe)), "--copy");
  expect_refused(call(with({"simulate", "--copy-gbps", "5"}, kSlimpipe)), "--copy SECONDS");
}

TEST(OffloadCommand, RefusesCostsThatHaveNoRecordsToCopy) {
  const Scratch scratch;
  for (const auto& [records, code] :
       {std::pair{"", 2}, {"record * * 0 10 10\n", 2}, {"record 1 * 640 0 0\n", 0}}) {
    scratch.write("costs", std::string("F * * 1\nB * * 2\nOFFLOAD * * 1\n") + records);
    const Ending ending =
        call(with({"simulate", "--offload", "0.5", "--costs", scratch / "costs"}, kSlimpipe));
    EXPECT_EQ(ending.exit_code, code) << records << ending.err;
    EXPECT_EQ(ending.err.find("costs: there are no records to offload; give the bytes of some") !=
                  std::string::npos,
              code == 2);
  }
}

class OffloadRun : public ::testing::Test {
 protected:
  void SetUp() override { scratch_.write("run.toml", small_run_file(scratch_)); }

  Ending run(const std::string& verb, const Arguments& settings) {
    return call(with({verb, scratch_ / "run.toml"}, settings));
  }

  Scratch scratch_;
};

TEST_F(OffloadRun, SlowsDownWithItsCopiesInSimulation) {
  const auto makespan = [&](const Arguments& more) {
    const Ending ending = run("simulate", with({"--json", "--memory.offload", "1"}, more));
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return Json::parse(ending.out)["makespan_s"].get<double>();
  };
  EXPECT_GT(makespan({"--copy-gbps", "0.0001"}), makespan({"--copy-gbps", "1000"}));
  EXPECT_GT(makespan({"--hardware", "this-machine"}), 0);
  expect_refused(run("simulate", {"--copy-gbps", "0.0"}), "--copy-gbps");
  expect_refused(run("simulate", {"--hardware", "none-such"}), "none-such");
  const Arguments to_disk{"--hardware", "h100", "--memory.offload_to", "disk"};
  expect_refused(run("simulate", with({"--memory.offload", "1"}, to_disk)), "disk_gbps");
  const auto with_speed = [&](const char* gbps) { return makespan(with(to_disk, {"--copy-gbps", gbps})); };
  EXPECT_GT(with_speed("0.0001"), with_speed("2"));
}

TEST(OffloadSweep, DividesCopiesAndRecordsLikeOtherWork) {
  const Ending swept = call({"simulate", "--schedule", "slimpipe", "-p", "2", "-m", "2", "--offload", "1",
                             "--sweep", "slices=8,16", "--json"});
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  const Json rows = Json::parse(swept.out)["rows"];
  EXPECT_LT(rows[1]["makespan_s"].get<double>(), rows[0]["makespan_s"].get<double>());
  EXPECT_LT(rows[1]["peak_bytes"].get<double>(), rows[0]["peak_bytes"].get<double>());
}

TEST_F(OffloadRun, TrainsTheSameAndTellsWhatWasHiddenAndWhatWasAway) {
  const auto train = [&](const Arguments& more) {
    const Ending ending = run("train", with({"--ranks", "2"}, more));
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return ending.out;
  };
  train({});
  const std::string said =
      train({"--memory.offload", "1", "--memory.offload_to", "disk", "--output.dir", scratch_ / "away"});
  EXPECT_TRUE(scratch_.read("run/weights.safetensors") == scratch_.read("away/weights.safetensors"));
  EXPECT_NE(said.find("copies    "), std::string::npos) << said;
  EXPECT_NE(said.find("  disk  "), std::string::npos) << said;
  const Json device = Json::parse(scratch_.read("away/summary.json"))["devices"][0];
  EXPECT_GT(device["predicted_bytes"]["disk"], 0);
  EXPECT_EQ(device["predicted_bytes"]["disk"], device["measured_bytes"]["disk"]);
  EXPECT_EQ(device["predicted_bytes"]["activations"], device["measured_bytes"]["activations"]);
  for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "away")) {
    EXPECT_EQ(entry.path().filename().string().find("offload"), std::string::npos);
  }
  const Ending simulated = call({"simulate", scratch_ / "away"});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
}

// The file has no name from the first byte on, so there is nothing to tidy up.
TEST_F(OffloadRun, LeavesNothingOnTheDiskWhenItIsKilled) {
  std::filesystem::create_directory(scratch_ / "spill");
  RunningProgram running({PENSTOCK_PROGRAM, "train", scratch_ / "run.toml", "--ranks", "2", "--train.steps",
                          "1000000", "--memory.offload", "1", "--memory.offload_to", "disk",
                          "--memory.offload_dir", scratch_ / "spill"});
  const Seconds until = seconds_now() + 100;
  while (seconds_now() < until && !std::filesystem::exists(scratch_ / "run/metrics.jsonl")) sleep_a_little();
  while (seconds_now() < until && scratch_.read("run/metrics.jsonl").empty()) sleep_a_little();
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "spill"));
  ::kill(running.process(), SIGKILL);
  EXPECT_NE(running.wait(60).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "spill"));
}

// What was saved before stays as it was, and a run without the trouble goes on from it.
TEST_F(OffloadRun, WhoseCopyFailsTouchesNoCheckpoint) {
  const Arguments away{"--memory.offload", "1", "--memory.offload_to", "disk", "--schedule.slices", "8"};
  const auto going_on = [&](int steps) {
    Arguments words{"train", scratch_ / "run.toml", "--resume", "--train.checkpoint_every", "1000000"};
    words.insert(words.end(), {"--train.steps", std::to_string(steps)});
    return with_mpirun(2, with(words, away));
  };
  const Ending first = run("train", with({"--ranks", "2", "--train.checkpoint_every", "2"}, away));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto saved = files_below(scratch_ / "run/checkpoints");
  ASSERT_GT(saved.size(), 2u);

  RunningProgram program(going_on(1000000));
  const std::size_t before = lines_of(scratch_.read("run/metrics.jsonl")).size();
  const Seconds until = seconds_now() + 60;
  while (lines_of(scratch_.read("run/metrics.jsonl")).size() < before + 3 && seconds_now() < until)
    sleep_a_little();
  const std::vector<int> ranks = ranks_of(program.process());
  ASSERT_EQ(ranks.size(), 2u);
  fill_disk_of(ranks[1]);
  const Ending failed = program.wait(60);
  EXPECT_EQ(failed.exit_code, 3) << failed.err;
  EXPECT_NE(failed.err.find("offload of rank 1 cannot be written: "), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find(" bytes wanted: File too large"), std::string::npos) << failed.err;
  EXPECT_EQ(files_below(scratch_ / "run/checkpoints"), saved);

  const Ending last = run_program(going_on(static_cast<int>(before) + 1), 60);
  EXPECT_EQ(last.exit_code, 0) << last.err;
}

// The directory was for the run alone.
TEST_F(OffloadRun, IsReportedWhereItsDirectoryIsGone) {
  std::filesystem::create_directory(scratch_ / "spill");
  const Ending trained = run("train", {"--ranks", "2", "--memory.offload", "1", "--memory.offload_to", "disk",
                                       "--memory.offload_dir", scratch_ / "spill"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  std::filesystem::remove(scratch_ / "spill");
  for (const char* command : {"report", "simulate"}) {
    const Ending ending = call({command, scratch_ / "run"});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
  }
}

TEST_F(OffloadRun, RefusesADirectoryThatIsNoneOrIsOfNoUse) {
  const Arguments none{"--ranks", "2", "--memory.offload_dir", scratch_ / "none"};
  expect_refused(run("train", none), "is for records that go to disk");
  expect_refused(run("train", with(none, {"--memory.offload_to", "disk"})), "is not a directory");
}

TEST_F(OffloadRun, NeedsADirectoryOnEachHostWhereRecordsGoToDisk) {
  const Arguments gathers{"--ranks", "2", "--dry-run", "--output.gather", "true", "--memory.offload_to",
                          "disk"};
  const Ending none = run("train", gathers);
  EXPECT_EQ(none.exit_code, 0) << none.err;
  expect_refused(run("train", with(gathers, {"--memory.offload", "1"})), "needs memory.offload_dir");
}

}  // namespace
}  // namespace penstock::testing
