// SPDX-License-Identifier: Apache-2.0
// The choice of experts for each token (docs/moe.md, "The layer"; Shazeer et al. 2017, section 2; Fedus et
// al. 2021; Jiang et al. 2024, "Mixtral of Experts", section 2.1). n tokens, E experts, of which each token
// has k.
//
// Scores are in the accumulator type, so that small differences decide the same way in every precision. All
// tensors here are the host's, which has to know how many rows each expert gets.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace penstock::nn {

enum class RouteWeights : std::uint8_t {
  OfChosen,  // softmax over the scores of the token's experts: they sum to 1 (Mixtral, Qwen3-MoE)
  OfAll,     // their shares of the softmax over all experts (Qwen2-MoE)
};

// Experts chosen whatever the scores say, for measurements: in turn, from the first on in every call; with a
// skew so that expert e has a share of the tokens that falls as (e + 1)^-skew, as far as a token's experts
// are different ones.
struct ForcedChoice {
  bool on = false;
  double skew = 0;
};

struct Routing {
  at::Tensor experts;      // [n, k] int64, each token's in ascending order
  at::Tensor weights;      // [n, k], of these experts
  at::Tensor log_sum_exp;  // [n], over all scores
};

// Each token's k experts with the greatest scores [n, E]; of equal scores the lower index. Forced ones have
// the weights that their scores give them.
Routing route(const at::Tensor& scores, std::int64_t k, RouteWeights kind, const ForcedChoice& forced = {});

// The gradient of the scores [n, E], given that of the weights [n, k].
at::Tensor route_backward(const at::Tensor& grad_weights, const at::Tensor& scores, const Routing& routing,
                          RouteWeights kind);

// Losses beside the model's own that depend on the scores alone.
struct RouteLosses {
  // Switch Transformer's, sum over tokens t of sum over experts e of balance[e] · softmax(scores[t])[e]: the
  // shares of the tokens that chose e are constants, so that balance[e] is β·E·c_e / (k·T²).
  std::vector<double> balance;
  double z = 0;  // z · sum over tokens of log_sum_exp²
};

// The gradients added to those of the scores.
void add_route_losses_backward(at::Tensor& grad_scores, const at::Tensor& scores, const Routing& routing,
                               const RouteLosses& losses);

// The sums over tokens that the losses are made of: each expert's share of the softmax, added to `shares`
// [E], and log_sum_exp². In f64 and in the tokens' order.
void add_shares(const at::Tensor& scores, const Routing& routing, std::span<double> shares);
double sum_of_squares(const Routing& routing);

}  // namespace penstock::nn
