// SPDX-License-Identifier: Apache-2.0
// A mixture of experts in place of a layer's feed-forward block (docs/moe.md, "The layer"; Shazeer et al.
// 2017; Jiang et al. 2024): y = Σ over a token's k experts e of down_e(w_e · silu(gate_e(x)) · up_e(x)). No
// token is dropped. The weight is applied before the down product, so no expert's output is kept.
//
// n tokens, E experts, R = n·k rows where one rank has all experts.
#pragma once

#include <vector>

#include "nn/experts/expert_rows.h"
#include "nn/experts/route.h"
#include "nn/experts/shared_expert.h"
#include "nn/groups/expert_group.h"
#include "nn/parameters/parameter.h"

namespace penstock::nn {

struct Mixture {
  Parameter* router = nullptr;  // [E, h]
  std::vector<Expert> experts;  // this rank's
  SharedExpert shared;          // if any
  const ExpertGroup* group = &ExpertGroup::alone();
  std::int64_t chosen = 1;  // k
  RouteWeights weights = RouteWeights::OfChosen;
  ForcedChoice forced;

  bool defined() const { return router != nullptr; }
};

// What one slice keeps for the backward. Undefined tensors are recomputed from the input.
struct MixtureRecord {
  at::Tensor scores;  // [n, E], accumulator type
  Routing routing;
  ExpertOrder order;       // of this rank's tokens
  ExpertRoute route;       // to the experts' ranks
  at::Tensor row_weights;  // [R], the routing weights
  at::Tensor dispatched;   // [R, h], the inputs of this rank's experts
  at::Tensor gate, up;     // [R, f]
  at::Tensor product;      // [R, f], w · silu(gate) · up
  SharedExpertRecord shared;
};

// The operands of the weight gradients of one slice.
struct MixtureWeightRecord {
  std::vector<std::int64_t> counts;  // rows of each expert
  at::Tensor input, grad_scores;     // of the router
  at::Tensor dispatched, grad_rows;  // [R, h]: the experts' inputs, and the gradients of their outputs
  at::Tensor product, grad_gate, grad_up;
  SharedExpertWeightRecord shared;
};

// Maps input [n, h] to output [n, h].
at::Tensor mixture_forward(const Mixture& mixture, const at::Tensor& input, MixtureRecord& record);

// Maps grad_output [n, h] to the gradient of the input. Consumes the record and the input, which the weight
// gradients need.
at::Tensor mixture_backward_input(const Mixture& mixture, at::Tensor input, const at::Tensor& grad_output,
                                  const RouteLosses& losses, MixtureRecord record,
                                  MixtureWeightRecord& pending);

// Adds the weight gradients of a slice.
void mixture_backward_weight(const Mixture& mixture, MixtureWeightRecord pending);

}  // namespace penstock::nn
