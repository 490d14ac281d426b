// SPDX-License-Identifier: Apache-2.0
#include "train/record/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "failure.h"
#include "faulty_files.h"
#include "scratch.h"

namespace penstock::train {
namespace {

using nlohmann::json;

void write_steps(const std::string& path, std::int64_t first, std::int64_t last) {
  MetricsFile file(path, first - 1);
  for (std::int64_t step = first; step <= last; ++step) file.write({.step = step, .loss = 1.0 / step});
}

// What is told of the file when it is opened for lines after `last`.
std::string remarks_on(const std::string& path, std::int64_t last, const std::string& line = {}) {
  return join(MetricsFile(path, last, line).remarks(), "\n");
}

std::vector<std::int64_t> steps_in(const std::string& text) {
  std::vector<std::int64_t> steps;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) steps.push_back(json::parse(line)["step"].get<std::int64_t>());
  }
  return steps;
}

TEST(Metrics, HaveTheKeysThatScriptsRelyOn) {
  const json line =
      json::parse(to_json(StepMetrics{.step = 3, .loss = 2.5, .tokens = 8192, .peak_bytes = 1 << 30}));
  for (const char* key : {"step", "loss", "grad_norm", "lr", "tokens", "step_s", "tokens_per_second", "mfu",
                          "bubble_fraction", "peak_bytes"}) {
    EXPECT_TRUE(line.contains(key)) << key;
  }
  EXPECT_EQ(line["tokens"], 8192);
  EXPECT_EQ(line["peak_bytes"], 1 << 30);
  EXPECT_FALSE(line.contains("evaluation_loss"));
  EXPECT_TRUE(json::parse(to_json(StepMetrics{.evaluation_loss = 2.0})).contains("evaluation_loss"));
}

TEST(Metrics, HaveTheRowsOfEveryExpert) {
  const ExpertLoad load{.rows = {{4, 4}, {6, 2}}, .balance_loss = 0.25, .z_loss = 0.5};
  const json line = json::parse(to_json(StepMetrics{.step = 1, .load = load}));
  EXPECT_EQ(line["expert_rows"], json::parse("[[4, 4], [6, 2]]"));
  EXPECT_EQ(line["expert_load"], 1.5);
  EXPECT_EQ(line["balance_loss"], 0.25);
  EXPECT_EQ(line["z_loss"], 0.5);
  EXPECT_FALSE(json::parse(to_json(StepMetrics{.step = 1})).contains("expert_rows"));
}

TEST(Metrics, HaveTheTrafficOfEveryAxisOfSeveralRanks) {
  StepMetrics metrics;
  for (const mesh::Group group : kLayerAxes) metrics.traffic[group] = {.sent = 12, .waited = 0.5};
  const Summary summary{.traffic = metrics.traffic};
  for (const std::string& text : {to_json(metrics), to_json(summary)}) {
    const json object = json::parse(text);
    for (const std::string axis : {"tensor", "context", "expert"}) {
      EXPECT_EQ(object.at(axis + "_bytes"), 12);
      EXPECT_EQ(object.at(axis + "_waited_s"), 0.5);
    }
  }
  EXPECT_FALSE(json::parse(to_json(StepMetrics{})).contains("tensor_bytes"));
}

TEST(Metrics, PrintLossesToTheLastBit) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const double loss = normal(1, i) * std::pow(10, normal(2, i) * 5);
    EXPECT_EQ(json::parse(to_json(StepMetrics{.loss = loss}))["loss"].get<double>(), loss);
  }
}

TEST(Metrics, StayJsonWhenALossIsNotFinite) {
  StepMetrics metrics{.loss = std::numeric_limits<double>::quiet_NaN(),
                      .grad_norm = std::numeric_limits<double>::infinity(),
                      .skipped = true};
  const json line = json::parse(to_json(metrics));
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["grad_norm"].is_null());
  EXPECT_EQ(line["skipped"], true);
}

// TensorBoard would draw a value that is not a number as a failure.
TEST(Metrics, OfAStepWithoutTargetsHaveNoLoss) {
  const StepMetrics metrics{.step = 1, .loss = {}, .skipped = true};
  EXPECT_TRUE(json::parse(to_json(metrics))["loss"].is_null());
  for (const auto& [name, value] : curves_of(metrics)) EXPECT_NE(name, "train/loss");
}

TEST(MetricsFile, HasReachedTheFileAfterEveryStep) {
  const Scratch scratch;
  MetricsFile file(scratch / "metrics.jsonl", 0);
  for (std::int64_t step = 1; step <= 3; ++step) {
    file.write({.step = step});
    EXPECT_EQ(steps_in(scratch.read("metrics.jsonl")).size(), step);
  }
}

TEST(MetricsFile, HasOneLineAStepAfterAResume) {
  const Scratch scratch;
  write_steps(scratch / "m", 1, 7);
  scratch.write("m", scratch.read("m") + "{\"step\":8,\"lo");  // killed while writing
  write_steps(scratch / "m", 5, 9);
  EXPECT_EQ(steps_in(scratch.read("m")), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  write_steps(scratch / "m", 1, 2);
  EXPECT_EQ(steps_in(scratch.read("m")), (std::vector<std::int64_t>{1, 2}));
}

// A copy in a host's memory may be of a step whose line was not written.
TEST(MetricsFile, TakesTheLineThatIsMissing) {
  const Scratch scratch;
  const std::string path = scratch / "m", line = to_json(StepMetrics{.step = 3, .loss = 7});
  const auto steps = [&](std::int64_t last) {
    { const MetricsFile file(path, last, line); }
    return steps_in(scratch.read("m"));
  };
  write_steps(path, 1, 2);
  EXPECT_EQ(steps(3), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(steps(3), (std::vector<std::int64_t>{1, 2, 3})) << "it is there";
  EXPECT_EQ(steps(2), (std::vector<std::int64_t>{1, 2}));
}

TEST(MetricsFile, NamesTheStepsWhoseLinesAreLost) {
  const Scratch scratch;
  const std::string path = scratch / "m";
  write_steps(path, 1, 2);
  EXPECT_EQ(remarks_on(path, 2), "");
  EXPECT_EQ(remarks_on(path, 3, to_json(StepMetrics{.step = 3})), "");
  const std::string told = remarks_on(path, 6, to_json(StepMetrics{.step = 6}));
  EXPECT_TRUE(told.starts_with(path + " lacks the lines of steps 4 to 5; a lost host ")) << told;
  EXPECT_EQ(steps_in(scratch.read("m")), (std::vector<std::int64_t>{1, 2, 3, 6}));
  EXPECT_TRUE(remarks_on(path, 8).starts_with(path + " lacks the lines of steps 7 to 8; "));
}

// As on another host, after the one that had the run directory is lost.
TEST(MetricsFile, ThatIsMissingLacksAllLinesButTheLast) {
  const Scratch scratch;
  const std::string path = scratch / "m", line = to_json(StepMetrics{.step = 6});
  EXPECT_EQ(remarks_on(path, 6), path + " lacks the lines of steps 1 to 6; the file was gone");
  std::filesystem::remove(path);
  EXPECT_TRUE(remarks_on(path, 6, line).starts_with(path + " lacks the lines of steps 1 to 5; "));
  EXPECT_EQ(scratch.read("m"), line + "\n");
}

TEST(MetricsFile, IsFlushedOnceASecondAtMost) {
  const Scratch scratch;
  MetricsFile file(scratch / "m", 0);
  const FaultyFiles counting;
  for (std::int64_t step = 1; step <= 3; ++step) file.flush_at_times();
  EXPECT_EQ(counting.calls(), 1);
}

// A run's checkpoints are good though one line of its curves is not.
TEST(MetricsFile, LeavesOutLinesThatAreNoMetricsAndNamesTheFirst) {
  const Scratch scratch;
  const std::string path = scratch / "m", noise = path + ", line 2: \"noise\" is not a step's metrics; ";
  scratch.write("m", "{\"step\":1}\nnoise\n{\"step\":3}\n{\"step\":4}\n");
  const std::string kept = "; the file as it was is kept as " + path + ".damaged";
  EXPECT_EQ(remarks_on(path, 3), noise + "it is left out" + kept + "\n" + path +
                                     " lacks the lines of steps 2; damaged lines are left out");
  EXPECT_EQ(scratch.read("m"), "{\"step\":1}\n{\"step\":3}\n");
  EXPECT_EQ(scratch.read("m.damaged"), "{\"step\":1}\nnoise\n{\"step\":3}\n{\"step\":4}\n");
  EXPECT_EQ(remarks_on(path, 3), "");
  scratch.write("m", "{\"step\":1}\nnoise\n{\"step\":-3}\n{\"step\":18446744073709551615}\n");
  EXPECT_EQ(remarks_on(path, 4), noise + "it is left out, like 2 later lines" + kept + "\n" + path +
                                     " lacks the lines of steps 2 to 4; damaged lines are left out");
  EXPECT_EQ(scratch.read("m"), "{\"step\":1}\n");
}

TEST(MetricsFile, KeepsOneLineOfAStepInTheOrderOfSteps) {
  const Scratch scratch;
  const std::string path = scratch / "m";
  scratch.write("m", "{\"step\":2}\n{\"step\":1}\n{\"step\":2,\"loss\":7}\n{\"step\":3}\n");
  EXPECT_EQ(remarks_on(path, 3),
            path +
                ", line 3: \"{\"step\":2,\"loss\":7}\" is a second line of step 2; it is left out; the "
                "file as it was is kept as " +
                path + ".damaged");
  EXPECT_EQ(scratch.read("m"), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST(MetricsFile, NamesEveryGapThatDamageLeaves) {
  const Scratch scratch;
  scratch.write("m", "noise\n{\"step\":2}\n{\"step\":3}\n{\"step\":5}\n{\"step\":8}\n");
  const std::string told = remarks_on(scratch / "m", 10);
  EXPECT_NE(told.find(" lacks the lines of steps 1, 4, 6 to 7, 9 to 10; "), std::string::npos) << told;
}

TEST(MetricsFile, LeavesOutALineWhoseNumbersAreNone) {
  const Scratch scratch;
  for (const char* member : {"\"loss\":\"oops\"", "\"grad_norm\":{}", "\"step_s\":[1]", "\"time\":true"}) {
    scratch.write("m", "{\"step\":1,\"loss\":null}\n{\"step\":2," + std::string(member) + "}\n");
    EXPECT_NE(remarks_on(scratch / "m", 2).find("line 2"), std::string::npos) << member;
    EXPECT_EQ(scratch.read("m"), "{\"step\":1,\"loss\":null}\n");
  }
}

TEST(MetricsFile, NamesAPathThatCannotBeWritten) {
  const Scratch scratch;
  EXPECT_NE(failure<RunError>([&] { MetricsFile(scratch / "none/m", 0); }).find("none/m cannot be written"),
            std::string::npos);
}

TEST(Summary, HasTheMemoryOfEveryDeviceByCategory) {
  Summary summary{.steps = 5, .wall_s = 2.5, .machine = "a \xff machine"};
  summary.devices = {{{{"weights", 10}, {"total", 12}}, {{"weights", 11}, {"total", 13}}}, {}};
  const json document = json::parse(to_json(summary));
  EXPECT_EQ(document["wall_s"], 2.5);
  EXPECT_EQ(document["devices"][0]["predicted_bytes"]["weights"], 10);
  EXPECT_EQ(document["devices"][0]["measured_bytes"]["total"], 13);
  EXPECT_EQ(document["devices"].size(), 2u);
  EXPECT_TRUE(document["evaluation_loss"].is_null());
}

}  // namespace
}  // namespace penstock::train
