// SPDX-License-Identifier: Apache-2.0
// The oracle's mixture of experts: every expert for every token, weighted by what the router says, and the
// routers' losses by their formulas.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <map>
#include <string>
#include <vector>

#include "model/shape.h"

namespace penstock::reference {

using Weights =
    std::map<std::string, at::Tensor>;  // by Hugging Face's name, f64; no lm_head.weight when tied

// Of one layer and micro-batch.
struct Choice {
  at::Tensor scores;  // [N, E]
  at::Tensor chosen;  // [N, E], 1 where the token goes to the expert
};

// With coefficients; of a window of the whole step, or of every micro-batch.
struct RouterLosses {
  double balance = 0, z = 0;
  bool over_step = false;
};

inline Choice choose(const at::Tensor& scores, std::int64_t k) {
  const at::Tensor order = std::get<1>(at::sort(scores.detach(), /*stable=*/true, -1, /*descending=*/true));
  return {scores, at::zeros_like(scores).scatter_(-1, order.narrow(-1, 0, k), 1)};
}

// x [b, s, h]; `prefix` ends before the parts' names.
inline at::Tensor mixture(const at::Tensor& x, const model::Shape& shape, const Weights& weights,
                          const std::string& prefix, Choice& choice) {
  const auto weight = [&](const std::string& name) { return weights.at(prefix + name + ".weight").t(); };
  const at::Tensor rows = x.reshape({-1, shape.hidden});
  choice = choose(at::matmul(rows, weight(model::router_name(shape))), shape.experts_per_token);
  const at::Tensor& scores = choice.scores;
  const at::Tensor shares = shape.normalised_experts
                                ? at::softmax(scores.masked_fill(choice.chosen.eq(0), -INFINITY), -1)
                                : at::softmax(scores, -1) * choice.chosen;
  at::Tensor sum = at::zeros_like(rows);
  for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
    const model::ExpertNames names = model::expert_names(shape, expert);
    const at::Tensor product =
        at::silu(at::matmul(rows, weight(names.gate))) * at::matmul(rows, weight(names.up));
    sum = sum + at::matmul(product, weight(names.down)) * shares.select(1, expert).unsqueeze(1);
  }
  if (shape.shared_ffn > 0) {
    const model::ExpertNames names = model::shared_expert_names();
    const at::Tensor output =
        at::matmul(at::silu(at::matmul(rows, weight(names.gate))) * at::matmul(rows, weight(names.up)),
                   weight(names.down));
    sum = sum + (shape.shared_gate ? at::sigmoid(at::matmul(rows, weight(model::shared_gate_name()))) * output
                                   : output);
  }
  return sum.view(x.sizes());
}

// choices[micro-batch][layer].
inline at::Tensor router_loss(const model::Shape& shape, const RouterLosses& losses,
                              const std::vector<std::vector<Choice>>& choices) {
  const auto micro_batches = static_cast<double>(choices.size());
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (std::size_t layer = 0; layer < choices.front().size(); ++layer) {
    at::Tensor all = at::zeros({shape.experts}, at::kDouble);
    for (const auto& of_layers : choices) all = all + of_layers[layer].chosen.sum(0);
    for (const auto& of_layers : choices) {
      const auto& [scores, chosen] = of_layers[layer];
      const auto tokens = static_cast<double>(scores.size(0));
      const double window = losses.over_step ? tokens * micro_batches : tokens;
      const at::Tensor counts = losses.over_step ? all : chosen.sum(0);
      const double factor = losses.balance * static_cast<double>(shape.experts) /
                            (static_cast<double>(shape.experts_per_token) * window * window);
      sum = sum +
            (at::softmax(scores, -1).sum(0) * counts).sum() * factor / (losses.over_step ? 1 : micro_batches);
      sum = sum + scores.logsumexp(-1).square().mean() * losses.z / micro_batches;
    }
  }
  return sum;
}

}  // namespace penstock::reference
