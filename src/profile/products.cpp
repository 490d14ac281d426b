// SPDX-License-Identifier: Apache-2.0
#include "profile/products.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "backend/device.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/matmul.h"
#include "nn/stage_parameters.h"
#include "profile/ring.h"

namespace penstock::profile {
namespace {

// Drawn once: kernel speed does not depend on the values.
at::Tensor numbers(std::int64_t rows, std::int64_t columns, at::ScalarType type) {
  return at::randn({rows, columns}, backend::on_device(at::kFloat)).to(type);
}

// About as many as five layers have; of large ones, a gigabyte.
struct Weights {
  Ring<at::Tensor> weights, gradients;

  Weights(const Effort& effort, std::int64_t width, at::ScalarType type)
      : weights(cold_sets(effort, width * width * at::elementSize(type), 1 << 30, 32),
                [drawn = numbers(width, width, type)] { return drawn.clone(); }),
        gradients(weights.size(), [&] {
          return at::zeros({width, width}, backend::on_device(nn::kernels::accumulator_type(type)));
        }) {}
};

struct Activations {
  Ring<at::Tensor> inputs, outputs;

  Activations(const Effort& effort, std::int64_t tokens, std::int64_t width, at::ScalarType type)
      : inputs(cold_sets(effort, tokens * width * at::elementSize(type)),
               [drawn = numbers(tokens, width, type)] { return drawn.clone(); }),
        // Their memory is mapped already, as in every step but the first.
        outputs(inputs.size(), [&] {
          return at::zeros({tokens, width}, backend::on_device(type));
        }) {}
};

}  // namespace

ProductRates measure_products(Recorder& recorder, const Sizes& sizes, model::Precision precision) {
  const at::ScalarType type = nn::compute_type(precision);
  const std::size_t widths = sizes.matrix_width.size(), count = sizes.matrix_tokens.size() * widths;
  ProductRates rates{Numbers(count), Numbers(count), Numbers(count)};
  for (std::size_t column = 0; column < widths; ++column) {
    const double width = sizes.matrix_width[column];
    Weights w(recorder.effort(), static_cast<std::int64_t>(width), type);
    for (std::size_t row = 0; row < sizes.matrix_tokens.size(); ++row) {
      const double tokens = sizes.matrix_tokens[row];
      Activations x(recorder.effort(), static_cast<std::int64_t>(tokens), static_cast<std::int64_t>(width),
                    type);
      const auto rate = [&](const std::function<void()>& work) {
        return 2 * tokens * width * width / recorder.seconds(work);
      };
      const std::size_t at = row * widths + column;
      rates.forward[at] =
          rate([&] { x.outputs.next() = nn::kernels::product(x.inputs.next(), w.weights.next()); });
      rates.input[at] =
          rate([&] { x.outputs.next() = nn::kernels::product_backward(x.inputs.next(), w.weights.next()); });
      rates.weight[at] = rate([&] {
        const at::Tensor& grad_output = x.inputs.next();
        nn::kernels::accumulate_weight_gradient(w.gradients.next(), grad_output, x.inputs.next());
      });
    }
  }
  return rates;
}

std::function<void()> yardstick() {
  if (!backend::compute_device().is_cpu()) return {};
  constexpr std::int64_t kTokens = 64, kWidth = 512;
  return [input = numbers(kTokens, kWidth, at::kFloat), weight = numbers(kWidth, kWidth, at::kFloat)] {
    nn::kernels::product(input, weight);
  };
}

}  // namespace penstock::profile
