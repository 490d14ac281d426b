// SPDX-License-Identifier: Apache-2.0
// Batches and held-out tokens of which none is a target: no loss is told of them, and they are no failure.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "faulty_files.h"
#include "files/megatron_files.h"
#include "scratch.h"
#include "train/run.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

// Four steps of two samples of eight tokens: the targets of step k are tokens 16 (k − 1) + 1 to 16 k. The
// second half of 160 tokens is held out.
run::Run masked_run(const Scratch& scratch, const std::string& mask) {
  std::vector<std::uint16_t> tokens;
  for (std::uint16_t token = 0; token < 160; ++token) tokens.push_back(token);
  scratch.write("a.bin", bin_of(tokens));
  scratch.write("a.idx", idx_of({160}).bytes());
  scratch.write("a.mask", mask);
  auto options = small_options("1f1b", 1, 1, "f32");
  options.data.text.clear();
  options.data.megatron = {scratch / "a"};
  options.data.mask = "none";
  options.data.seq_len = 8;
  options.data.validation_fraction = 0.5;
  options.train.shuffle = false;
  options.train.steps = 4;
  options.train.batch = 2;
  options.train.evaluate_every = 1;
  options.train.checkpoint_every = 2;
  options.output.dir = scratch / "run";
  return planned(options);
}

struct Recorded {
  std::vector<nlohmann::json> steps;
  train::RunOutcome outcome;
  std::vector<std::string> said;
};

Recorded carried_out(const run::Run& run) {
  const FaultyFiles quick;
  const train::TokenData data(run.options.data, run.options.train, run.shape().vocab);
  const train::RunDirectory directory(run.options.output.dir, train::RunStart::New);
  const auto alone = comm::make_single();
  at::set_num_threads(1);
  Recorded told;
  const train::RunObserver observer{.progress = [](const train::ProgressState&) {},
                                    .say = [&](const std::string& line) { told.said.push_back(line); }};
  told.outcome = train::run(run, data, *alone, &directory, observer, {.machine_flops = 1e9});
  const std::string metrics = contents_of(directory.metrics());
  for (const std::string_view line : split(metrics, '\n')) {
    if (!line.empty()) told.steps.push_back(nlohmann::json::parse(line));
  }
  return told;
}

TEST(WithoutTargets, AStepHasNoLossAndItsCheckpointIsWritten) {
  const Scratch scratch;
  std::string mask(160, '\1');
  for (const auto& [first, last] : {std::pair{17, 32}, {49, 64}})  // those of steps 2 and 4
    for (int token = first; token <= last; ++token) mask[static_cast<std::size_t>(token)] = '\0';
  const Recorded told = carried_out(masked_run(scratch, mask));
  ASSERT_EQ(told.steps.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(told.steps[i]["loss"].is_null(), i % 2 == 1) << i;
  EXPECT_EQ(told.outcome.summary.loss, told.steps[2]["loss"].get<double>());
  EXPECT_EQ(told.outcome.summary.skipped_steps, 2);
  EXPECT_GT(told.outcome.summary.evaluation_loss.value_or(0), 0);
  EXPECT_TRUE(std::filesystem::exists(scratch / "run/checkpoints/step-000002"));
}

TEST(WithoutTargets, AnEvaluationHasNoLossWhichIsToldOnce) {
  const Scratch scratch;
  const Recorded told = carried_out(masked_run(scratch, std::string(70, '\1') + std::string(90, '\0')));
  ASSERT_EQ(told.steps.size(), 4u);
  for (const nlohmann::json& step : told.steps) {
    EXPECT_FALSE(step.contains("evaluation_loss"));
    EXPECT_FALSE(step["loss"].is_null());
  }
  EXPECT_FALSE(told.outcome.summary.evaluation_loss);
  EXPECT_EQ(told.said,
            std::vector<std::string>{"no evaluated token is a target, so evaluations have no loss"});
}

}  // namespace
}  // namespace penstock::testing
