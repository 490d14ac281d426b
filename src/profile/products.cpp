// SPDX-License-Identifier: Apache-2.0
#include "profile/products.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/matmul.h"
#include "nn/stage_parameters.h"

namespace penstock::profile {
namespace {

constexpr std::size_t kMatrices = 8;

struct Operands {
  std::array<at::Tensor, kMatrices> weights, gradients;
  at::Tensor input, grad_output;
  std::size_t turn = 0;

  Operands(std::int64_t tokens, std::int64_t width, at::ScalarType type) {
    const auto made = [&](std::int64_t rows) { return at::randn({rows, width}, at::kFloat).to(type); };
    input = made(tokens);
    grad_output = made(tokens);
    for (std::size_t i = 0; i < kMatrices; ++i) {
      weights[i] = made(width);
      gradients[i] = at::zeros({width, width}, nn::kernels::accumulator_type(type));
    }
  }
  std::size_t next() { return turn = (turn + 1) % kMatrices; }
};

}  // namespace

ProductRates measure_products(Recorder& recorder, const Sizes& sizes, model::Precision precision) {
  ProductRates rates;
  for (const double tokens : sizes.matrix_tokens) {
    for (const double width : sizes.matrix_width) {
      Operands x(static_cast<std::int64_t>(tokens), static_cast<std::int64_t>(width),
                 nn::compute_type(precision));
      const double flops = 2 * tokens * width * width;
      rates.forward.push_back(flops /
                              recorder.seconds([&] { nn::kernels::product(x.input, x.weights[x.next()]); }));
      rates.input.push_back(flops / recorder.seconds([&] {
        nn::kernels::product_backward(x.grad_output, x.weights[x.next()]);
      }));
      rates.weight.push_back(flops / recorder.seconds([&] {
        nn::kernels::accumulate_weight_gradient(x.gradients[x.next()], x.grad_output, x.input);
      }));
    }
  }
  return rates;
}

}  // namespace penstock::profile
