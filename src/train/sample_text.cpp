// SPDX-License-Identifier: Apache-2.0
#include "train/sample_text.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "backend/device.h"
#include "base/error.h"
#include "base/random.h"

namespace penstock::train {
namespace {

// The token at which the cumulative probability exceeds `draw` in [0, 1).
std::int64_t pick(std::span<const float> logits, double temperature, double draw) {
  const double greatest = *std::ranges::max_element(logits);
  std::vector<double> weights;
  double sum = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp((static_cast<double>(logit) - greatest) / temperature));
    sum += weights.back();
  }
  double rest = draw * sum;
  for (std::size_t token = 0; token < weights.size(); ++token) {
    rest -= weights[token];
    if (rest < 0) return static_cast<std::int64_t>(token);
  }
  return static_cast<std::int64_t>(weights.size()) - 1;
}

}  // namespace

std::vector<std::int64_t> sample_text(nn::Stage& model, std::vector<std::int64_t> prompt,
                                      const Sampling& sampling) {
  PENSTOCK_CHECK(!prompt.empty(), "sampling continues a prompt");
  const std::size_t given = prompt.size();
  std::vector<std::int64_t>& text = prompt;
  for (std::int64_t i = 0; i < sampling.tokens; ++i) {
    // Evaluates the whole text for each token: samples are short, and no state is kept between calls.
    nn::ForwardInput input{.key = {0, 0}, .place = {1, static_cast<std::int64_t>(text.size()), 0}};
    input.tokens = {backend::to_device(
        at::from_blob(text.data(), {1, static_cast<std::int64_t>(text.size())}, at::dtype(at::kLong)))};
    // Models in f64 give f64.
    const at::Tensor logits = backend::to_host(model.evaluate_logits(input)).to(at::kFloat);
    model.forget(0);
    const std::int64_t vocab = logits.size(-1);
    const float* last = logits.const_data_ptr<float>() + logits.numel() - vocab;
    text.push_back(pick({last, static_cast<std::size_t>(vocab)}, sampling.temperature,
                        uniform(stream_key(sampling.seed, hash("sample")), static_cast<std::uint64_t>(i))));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(given), text.end()};
}

}  // namespace penstock::train
