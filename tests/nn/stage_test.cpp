// SPDX-License-Identifier: Apache-2.0
// Whole steps through stages against the plain autograd model, f64.
#include "nn/stage.h"

#include <gtest/gtest.h>

#include "nn/plain_pipeline.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using model::Precision;

model::Shape small_shape() {
  model::Shape shape{.layers = 4, .hidden = 24, .ffn = 40, .heads = 4, .kv_heads = 2, .vocab = 37};
  shape.rope_scaling = {
      .factor = 8, .low_frequency_factor = 1, .high_frequency_factor = 4, .original_positions = 16};
  return shape;
}

void expect_close(const reference::Weights& got, const reference::Weights& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, gradient] : wanted) {
    const double difference = (got.at(name).to(at::kDouble) - gradient).abs().max().item<double>();
    EXPECT_LT(difference, tolerance) << name;
  }
}

void expect_equals_autograd(const model::Shape& shape, const Cut& cut, std::int64_t b) {
  const std::int64_t s = std::accumulate(cut.slices.begin(), cut.slices.end(), std::int64_t{0});
  std::vector<reference::MicroBatch> batches;
  for (std::uint64_t micro_batch = 0; micro_batch < 3; ++micro_batch) {
    batches.push_back(random_batch(shape, b, s, micro_batch));
  }
  auto stages = make_stages(shape, Precision::F64, cut.stages, s, 5);
  const reference::Step wanted = reference::step(shape, weights_of(stages), batches, 0.25);
  const StepResult run = run_step(stages, batches, cut, 0.25);
  EXPECT_NEAR(run.loss, wanted.loss, 1e-10);
  expect_close(run.gradients, wanted.gradients, 1e-10);
}

TEST(Stage, WholeStepEqualsAutogradForEveryNumberOfStages) {
  for (int stages = 1; stages <= 4; ++stages) expect_equals_autograd(small_shape(), {stages, {7}}, 2);
}

TEST(Stage, SlicedStepEqualsAutogradEvenWhenSlicesDoNotDivide) {
  for (const auto& slices :
       std::vector<std::vector<std::int64_t>>{{4, 4}, {3, 3, 1}, {1, 2, 4, 6}, {1, 1, 1, 1, 1}}) {
    for (int stages : {1, 3}) expect_equals_autograd(small_shape(), {stages, slices}, 2);
  }
}

TEST(Stage, TiedEmbeddingsEqualAutograd) {
  model::Shape shape = small_shape();
  shape.tied_embeddings = true;
  for (int stages : {1, 2, 4}) expect_equals_autograd(shape, {stages, {5, 2}}, 1);
}

TEST(Stage, SplitBackwardEqualsAutograd) {
  for (const Backward how : {Backward::Split, Backward::SplitLate}) {
    expect_equals_autograd(small_shape(), {2, {3, 4}, how}, 2);
  }
}

// The loss of the same micro-batch after a step of `distance` along the directions.
double moved_loss(const reference::Weights& directions, const reference::MicroBatch& batch, double distance) {
  auto stages = make_stages(small_shape(), Precision::F64, 2, 7);
  for (nn::Stage& stage : stages) {
    for (nn::Parameter& parameter : stage.parameters()) {
      if (directions.contains(parameter.name)) parameter.weight.add_(directions.at(parameter.name), distance);
    }
  }
  return forward_all(stages, batch, 0, {4, 3}, 1.0);
}

TEST(Stage, GradientsEqualFiniteDifferences) {
  const auto batch = random_batch(small_shape(), 2, 7, 9);
  auto stages = make_stages(small_shape(), Precision::F64, 2, 7);
  const StepResult run = run_step(stages, {batch}, {2, {4, 3}}, 1.0);
  std::uint64_t seed = 0;
  for (const auto& [name, gradient] : run.gradients) {
    const reference::Weights direction{{name, random_tensor(gradient.sizes(), at::kDouble, ++seed)}};
    constexpr double kStep = 1e-5;
    const double slope =
        (moved_loss(direction, batch, kStep) - moved_loss(direction, batch, -kStep)) / (2 * kStep);
    const double wanted = (gradient * direction.at(name)).sum().item<double>();
    EXPECT_NEAR(slope, wanted, 1e-6 * std::max(1.0, std::abs(wanted))) << name;
  }
}

// A weight of another size fails in the middle of a layer.
TEST(Stage, IsWholeAfterAForwardThatFails) {
  for (const std::string name : {"1.self_attn.q_proj", "1.self_attn.o_proj", "2.mlp.down_proj"}) {
    nn::Stage stage(
        {.shape = small_shape(), .layers = {.first = 1, .count = 2}, .first = false, .last = false});
    for (nn::Parameter& parameter : stage.parameters()) {
      if (parameter.name == "model.layers." + name + ".weight")
        parameter.weight = random_tensor({24, 41}, at::kFloat, 2);
    }
    const at::Tensor hidden = random_tensor({7, 24}, at::kFloat, 1);
    const nn::ForwardInput input{.key = {0, 0}, .place = {1, 7, 0}, .last_slice = true, .hidden = hidden};
    EXPECT_ANY_THROW(stage.forward(input)) << name;
  }
}

}  // namespace
}  // namespace penstock::testing
