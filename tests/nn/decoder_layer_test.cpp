// SPDX-License-Identifier: Apache-2.0
// One layer, and the output layer, against autograd over odd sizes.
#include "nn/decoder_layer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "nn/layer_run.h"
#include "nn/output_layer.h"

namespace penstock::testing {
namespace {

void expect_layer_equals_autograd(const model::Shape& shape, std::int64_t b,
                                  const std::vector<std::int64_t>& slices, int shards = 1) {
  TestLayer test(shape, model::Precision::F64, shards);
  const std::int64_t s = std::accumulate(slices.begin(), slices.end(), std::int64_t{0});
  const at::Tensor x = random_tensor({b, s, shape.hidden}, at::kDouble, 1);
  const at::Tensor grad = random_tensor({b, s, shape.hidden}, at::kDouble, 2);
  const LayerResult got = run_layer(test, x, grad, slices);

  std::vector<at::Tensor> leaves{leaf(x)};
  reference::Weights weights;
  for (const auto& [name, weight] : test.whole) {
    leaves.push_back(leaf(weight));
    weights[name] = leaves.back();
  }
  reference::Choice none;
  const at::Tensor wanted = reference::decoder_layer(leaves[0], shape, weights, "model.layers.0.", none);
  const auto gradients = torch::autograd::grad({wanted}, leaves, {grad});
  expect_near(got.output, wanted, 1e-10, "output");
  expect_near(got.grad_input, gradients[0], 1e-10, "input's gradient");
  std::size_t next = 1;
  for (const auto& [name, gradient] : test.gradients()) expect_near(gradient, gradients[next++], 1e-10, name);
}

model::Shape shape_with_heads(std::int64_t heads, std::int64_t kv_heads) {
  return {.layers = 1, .hidden = heads * 6, .ffn = 19, .heads = heads, .kv_heads = kv_heads, .vocab = 5};
}

TEST(DecoderLayer, EqualsAutogradOverHeadsGroupsAndLengths) {
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {5, 5}, {8, 2}, {5, 1}}) {
    for (const std::int64_t s : {1, 2, 7, 128}) {
      expect_layer_equals_autograd(shape_with_heads(heads, kv_heads), s == 128 ? 1 : 3, {s});
    }
  }
}

TEST(DecoderLayer, EqualsAutogradInSlicesThatDoNotDivide) {
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {5, 5}, {8, 2}}) {
    for (const auto& slices :
         std::vector<std::vector<std::int64_t>>{{1, 1}, {3, 3, 1}, {1, 4, 2}, {50, 50, 28}}) {
      expect_layer_equals_autograd(shape_with_heads(heads, kv_heads), 2, slices);
    }
  }
}

TEST(DecoderLayer, HeadsMayBeWiderThanTheHiddenSizeSays) {
  model::Shape shape = shape_with_heads(4, 2);
  shape.head_size = 10;
  expect_layer_equals_autograd(shape, 2, {4, 3});
}

// More shards than tokens leave some without rows, more than key heads share these.
TEST(DecoderLayer, EqualsAutogradInLogicalShards) {
  for (const auto& [heads, kv_heads, shards] : {std::tuple{4, 4, 2}, {4, 2, 4}, {6, 3, 3}, {6, 1, 6}}) {
    for (const auto& slices : std::vector<std::vector<std::int64_t>>{{1}, {7}, {3, 3, 1}, {20, 17}}) {
      for (const std::int64_t b : {1, 3})
        expect_layer_equals_autograd(shape_with_heads(heads, kv_heads), b, slices, shards);
    }
  }
}

TEST(OutputLayer, LossAndGradientsEqualAutogradForEveryTile) {
  for (const std::int64_t tile : {1, 3, 7, 512}) {
    nn::Parameter norm{.name = "norm", .weight = random_tensor({12}, at::kDouble, 1)};
    nn::Parameter matrix{.name = "matrix", .weight = random_tensor({29, 12}, at::kDouble, 2)};
    norm.gradient = at::zeros({12}, at::kDouble);
    matrix.gradient = at::zeros({29, 12}, at::kDouble);
    const at::Tensor hidden = random_tensor({10, 12}, at::kDouble, 3), targets = random_ids(10, 30, 4) - 1;
    const nn::OutputLayer layer{&norm, &matrix, 1e-5, tile};
    const nn::OutputResult got = nn::output_forward(layer, hidden, targets, 0.125);

    const at::Tensor x = leaf(hidden), w = leaf(norm.weight), m = leaf(matrix.weight);
    const at::Tensor loss =
        reference::loss_sum(reference::project(reference::rms_norm(x, w, 1e-5), m), targets);
    const auto gradients = torch::autograd::grad({loss * 0.125}, {x, w, m});
    EXPECT_NEAR(got.loss_sum.value(), loss.item<double>(), 1e-10);
    EXPECT_NEAR(nn::output_loss(layer, hidden, targets).value(), loss.item<double>(), 1e-10);
    expect_near(got.grad_hidden, gradients[0], 1e-10, "hidden");
    expect_near(norm.gradient, gradients[1], 1e-10, "norm");
    expect_near(matrix.gradient, gradients[2], 1e-10, "matrix");
  }
}

}  // namespace
}  // namespace penstock::testing
