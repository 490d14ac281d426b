// SPDX-License-Identifier: Apache-2.0
// A whole optimizer step over threads, in f64, against the plain loop over micro-batches with autograd.
#include <gtest/gtest.h>

#include "nn/tensor_checks.h"
#include "schedule/generators/generator.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

constexpr double kTolerance = 1e-10;
constexpr double kRate = 1.0;
constexpr double kEpsilon = 1.0;

// Three micro-batches of two sequences; no decay and no clipping, so that an update tells the gradient.
run::Options step_options(const std::string& schedule, int devices, int slices, bool tied) {
  run::Options options = small_options(schedule, devices, slices, "f64");
  options.model.shape.tied_embeddings = tied;
  options.train.micro_batch = 2;
  options.train.batch = 6;
  options.train.warmup_steps = 0;
  options.train.lr = options.train.min_lr = kRate;
  options.train.eps = kEpsilon;
  options.train.weight_decay = 0;
  options.train.clip = 0;
  return options;
}

// Initial weights are small; with larger ones attention has something to choose.
void enlarge(std::map<int, nn::Stage>& stages) {
  for (auto& [number, stage] : stages) {
    for (nn::Parameter& parameter : stage.parameters()) {
      const bool counted = parameter.tied && parameter.master.is_same(stage.parameters().front().master);
      if (parameter.is_matrix && !counted) parameter.master.mul_(10);
    }
  }
}

struct OneStep {
  reference::Step step;
  double norm = 0;
  reference::Weights updated;  // AdamW's first update is lr·g / (|g| + eps): its corrections cancel
};

OneStep make_one_step(bool tied) {
  const run::Run run = planned(step_options("1f1b", 1, 1, tied));
  const reference::Weights weights = train_steps(run, 0, enlarge).weights;
  reference::Weights owners = weights;
  if (tied) owners.erase("lm_head.weight");
  const auto batches = drawn_batches(run, 1);
  const double scale = 1.0 / static_cast<double>(tokens_of(batches).target_count);
  OneStep oracle{.step = reference::step(run.shape(), owners, batches, scale)};
  for (const auto& [name, gradient] : oracle.step.gradients) {
    oracle.norm = std::hypot(oracle.norm, gradient.norm().item<double>());
    oracle.updated[name] = owners.at(name) - gradient * kRate / (gradient.abs() + kEpsilon);
  }
  if (tied) oracle.updated["lm_head.weight"] = oracle.updated.at("model.embed_tokens.weight");
  return oracle;
}

const OneStep& oracle(bool tied) {
  static const OneStep untied_one = make_one_step(false), tied_one = make_one_step(true);
  return tied ? tied_one : untied_one;
}

void expect_the_plain_step(const run::Options& options) {
  const OneStep& wanted = oracle(options.model.shape.tied_embeddings);
  const Trained got = train_steps(planned(options), 1, enlarge);
  EXPECT_NEAR(got.losses.at(0), wanted.step.loss, kTolerance);
  EXPECT_NEAR(got.norms.at(0), wanted.norm, kTolerance * wanted.norm);
  ASSERT_EQ(got.weights.size(), wanted.updated.size());
  for (const auto& [name, weight] : wanted.updated)
    expect_near(got.weights.at(name), weight, kTolerance, name);
}

void expect_plain_steps(const std::string& schedule, int devices, int slices) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(schedule + ", " + std::to_string(devices) + " devices" + (tied ? ", tied" : ""));
    expect_the_plain_step(step_options(schedule, devices, slices, tied));
  }
}

TEST(WholeStep, OfTheOracleIsNoSmallMatter) {
  for (const auto& [name, gradient] : oracle(false).step.gradients) {
    EXPECT_GT(gradient.abs().max().item<double>(), 1e-5) << name;
  }
}

TEST(WholeStep, OfSlimpipeIsThatOfThePlainLoop) {
  for (const int devices : {1, 2, 3, 4}) expect_plain_steps("slimpipe", devices, 4);
}

TEST(WholeStep, OfGpipeAndOneForwardOneBackwardIsThatOfThePlainLoop) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const int devices : {1, 2, 3, 4}) expect_plain_steps(schedule, devices, 1);
  }
}

TEST(WholeStep, OfEveryOtherScheduleIsThatOfThePlainLoop) {
  for (const schedule::Generator& generator : schedule::generators()) {
    if (generator.replicates_parameters) continue;
    const int slices = generator.sliced_sibling.empty() ? 4 : 1;
    for (const int devices : {2, 4}) expect_plain_steps(std::string(generator.name), devices, slices);
  }
}

TEST(WholeStep, OfInterleavedSlimpipeIsThatOfThePlainLoop) {
  for (const int devices : {1, 2, 4}) {
    run::Options options = step_options("slimpipe", devices, 4, true);
    options.schedule.chunks = 2;
    expect_the_plain_step(options);
  }
}

TEST(WholeStep, WithLayersSpreadUnevenlyIsThatOfThePlainLoop) {
  run::Options options = step_options("slimpipe", 3, 5, false);
  options.parallel.layers.list = {5, 1, 2};
  expect_the_plain_step(options);
}

TEST(WholeStep, ClipsTheWholeGradient) {
  run::Options options = step_options("slimpipe", 2, 4, true);
  options.train.clip = 0.1;
  const OneStep& wanted = oracle(true);
  ASSERT_GT(wanted.norm, 0.2);
  const run::Run run = planned(options);
  const reference::Weights before = train_steps(run, 0, enlarge).weights;
  const Trained got = train_steps(run, 1, enlarge);
  EXPECT_NEAR(got.norms.at(0), wanted.norm, kTolerance * wanted.norm);
  for (const auto& [name, gradient] : wanted.step.gradients) {
    const at::Tensor clipped = gradient * (0.1 / wanted.norm);
    const at::Tensor updated = before.at(name) - clipped * kRate / (clipped.abs() + kEpsilon);
    expect_near(got.weights.at(name), updated, kTolerance, name);
  }
}

}  // namespace
}  // namespace penstock::testing
