// SPDX-License-Identifier: Apache-2.0
// One layer, and the output layer, against autograd over odd sizes.
#include "nn/decoder_layer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "nn/kernels/rope.h"
#include "nn/output_layer.h"
#include "nn/reference_model.h"
#include "nn/stage_parameters.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using nn::LayerRecord;

// A layer with random weights (norms too, unlike fresh ones).
struct TestLayer {
  model::Shape shape;
  std::vector<nn::Parameter> parameters;
  nn::kernels::RotaryTable rotary;
  nn::DecoderLayer layer;

  explicit TestLayer(const model::Shape& given) : shape(given) {
    parameters = nn::make_parameters({.shape = shape,
                                      .layers = {0, 1},
                                      .first = false,
                                      .last = false,
                                      .precision = model::Precision::F64});
    rotary = nn::kernels::rotary_table(shape, 256, at::kDouble);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].weight.copy_(random_tensor(parameters[i].weight.sizes(), at::kDouble, 100 + i).mul(0.5));
    }
    const auto part = [&](const char* name) {
      return &nn::parameter_named(parameters, std::string("model.layers.0.") + name + ".weight");
    };
    layer.attention = {shape.heads,
                       shape.kv_heads,
                       part("self_attn.q_proj"),
                       part("self_attn.k_proj"),
                       part("self_attn.v_proj"),
                       part("self_attn.o_proj"),
                       &rotary};
    layer.feed_forward = {part("mlp.gate_proj"), part("mlp.up_proj"), part("mlp.down_proj")};
    layer.input_norm = part("input_layernorm");
    layer.post_attention_norm = part("post_attention_layernorm");
  }
};

struct LayerResult {
  at::Tensor output, grad_input;  // [b, s, h]
};

// All slices forward, then all backward, last first.
LayerResult run(TestLayer& test, const at::Tensor& x, const at::Tensor& grad,
                const std::vector<std::int64_t>& slices) {
  std::vector<LayerRecord> records(slices.size());
  std::vector<nn::SlicePlace> places;
  std::vector<at::Tensor> outputs, grads(slices.size());
  const auto rows = [&](const at::Tensor& all, const nn::SlicePlace& place) {
    return all.narrow(1, place.first_position, place.tokens).reshape({-1, test.shape.hidden}).contiguous();
  };
  const auto earlier = [&](std::size_t i) {
    std::vector<LayerRecord*> result;
    while (i-- > 0) result.push_back(&records[i]);
    return result;
  };
  std::int64_t position = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    places.push_back({x.size(0), slices[i], position});
    const at::Tensor output =
        nn::layer_forward(test.layer, rows(x, places[i]), places[i], earlier(i), records[i]);
    outputs.push_back(output.view({x.size(0), slices[i], -1}));
    position += slices[i];
  }
  for (std::size_t i = slices.size(); i-- > 0;) {
    nn::WeightRecord pending;
    const at::Tensor got = nn::layer_backward_input(test.layer, rows(grad, places[i]), places[i], earlier(i),
                                                    std::move(records[i]), pending);
    grads[i] = got.view({x.size(0), slices[i], -1});
    nn::layer_backward_weight(std::move(pending));
  }
  return {at::cat(outputs, 1), at::cat(grads, 1)};
}

void expect_equals_autograd(const model::Shape& shape, std::int64_t b,
                            const std::vector<std::int64_t>& slices) {
  TestLayer test(shape);
  const std::int64_t s = std::accumulate(slices.begin(), slices.end(), std::int64_t{0});
  const at::Tensor x = random_tensor({b, s, shape.hidden}, at::kDouble, 1);
  const at::Tensor grad = random_tensor({b, s, shape.hidden}, at::kDouble, 2);
  const LayerResult got = run(test, x, grad, slices);

  std::vector<at::Tensor> leaves{leaf(x)};
  reference::Weights weights;
  for (const nn::Parameter& parameter : test.parameters) {
    leaves.push_back(leaf(parameter.weight));
    weights[parameter.name] = leaves.back();
  }
  const at::Tensor wanted = reference::decoder_layer(leaves[0], shape, weights, "model.layers.0.");
  const auto gradients = torch::autograd::grad({wanted}, leaves, {grad});
  expect_near(got.output, wanted, 1e-10, "output");
  expect_near(got.grad_input, gradients[0], 1e-10, "input's gradient");
  for (std::size_t i = 0; i < test.parameters.size(); ++i) {
    expect_near(test.parameters[i].gradient, gradients[i + 1], 1e-10, test.parameters[i].name);
  }
}

model::Shape shape_with_heads(std::int64_t heads, std::int64_t kv_heads) {
  return {.layers = 1, .hidden = heads * 6, .ffn = 19, .heads = heads, .kv_heads = kv_heads, .vocab = 5};
}

TEST(DecoderLayer, EqualsAutogradOverHeadsGroupsAndLengths) {
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {5, 5}, {8, 2}, {5, 1}}) {
    for (const std::int64_t s : {1, 2, 7, 128}) {
      expect_equals_autograd(shape_with_heads(heads, kv_heads), s == 128 ? 1 : 3, {s});
    }
  }
}

TEST(DecoderLayer, EqualsAutogradInSlicesThatDoNotDivide) {
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {5, 5}, {8, 2}}) {
    for (const auto& slices :
         std::vector<std::vector<std::int64_t>>{{1, 1}, {3, 3, 1}, {1, 4, 2}, {50, 50, 28}}) {
      expect_equals_autograd(shape_with_heads(heads, kv_heads), 2, slices);
    }
  }
}

TEST(DecoderLayer, HeadsMayBeWiderThanTheHiddenSizeSays) {
  model::Shape shape = shape_with_heads(4, 2);
  shape.head_size = 10;
  expect_equals_autograd(shape, 2, {4, 3});
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
    EXPECT_NEAR(got.loss_sum, loss.item<double>(), 1e-10);
    EXPECT_NEAR(nn::output_loss(layer, hidden, targets), loss.item<double>(), 1e-10);
    expect_near(got.grad_hidden, gradients[0], 1e-10, "hidden");
    expect_near(norm.gradient, gradients[1], 1e-10, "norm");
    expect_near(matrix.gradient, gradients[2], 1e-10, "matrix");
  }
}

}  // namespace
}  // namespace penstock::testing
