// SPDX-License-Identifier: Apache-2.0
// The choice of experts for each token (docs/moe.md, "The layer"; Shazeer et al. 2017, section 2; Fedus et
// al. 2021; Jiang et al. 2024, "Mixtral of Experts", section 2.1). n tokens, E experts, k of them per token.
//
// Scores are in the accumulator type, so that small differences decide the same way in every precision. All
// tensors here are in host memory, since the host needs the number of rows of each expert.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace penstock::nn {

enum class RouteWeights : std::uint8_t {
  OfChosen,  // softmax over the scores of the token's experts; they sum to 1 (Mixtral, Qwen3-MoE)
  OfAll,     // their part of the softmax over all experts (Qwen2-MoE)
};

// Chooses experts independently of the scores, for measurements. Round-robin, starting at the first expert in
// every call; with a skew, expert e's share of the tokens falls as (e + 1)^-skew, as far as the experts of a
// token must differ.
struct ForcedChoice {
  bool on = false;
  double skew = 0;
};

struct Routing {
  at::Tensor experts;      // [n, k] int64, each token's in ascending order
  at::Tensor weights;      // [n, k], of these experts
  at::Tensor log_sum_exp;  // [n], over all scores
};

// Chooses the k experts with the greatest scores [n, E] for each token; ties go to the lower index. Forced
// experts get the weights of their scores.
Routing route(const at::Tensor& scores, std::int64_t k, RouteWeights kind, const ForcedChoice& forced = {});

// Returns the gradient of the scores [n, E] from that of the weights [n, k].
at::Tensor route_backward(const at::Tensor& grad_weights, const at::Tensor& scores, const Routing& routing,
                          RouteWeights kind);

// Auxiliary losses that depend only on the scores.
struct RouteLosses {
  // Switch Transformer's: sum over tokens t and experts e of balance[e] · softmax(scores[t])[e]. The shares
  // of tokens that chose e count as constants, so balance[e] is β·E·c_e / (k·T²).
  std::vector<double> balance;
  double z = 0;  // z · sum over tokens of log_sum_exp²
};

// Adds the losses' gradients to those of the scores.
void add_route_losses_backward(at::Tensor& grad_scores, const at::Tensor& scores, const Routing& routing,
                               const RouteLosses& losses);

// Sums over tokens for the losses, in f64 and in token order: each expert's softmax probability, added to
// `shares` [E], and log_sum_exp².
void add_shares(const at::Tensor& scores, const Routing& routing, std::span<double> shares);
double sum_of_squares(const Routing& routing);

}  // namespace penstock::nn
