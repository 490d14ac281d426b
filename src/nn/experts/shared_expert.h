// SPDX-License-Identifier: Apache-2.0
// The expert that processes every token in addition to the routed ones (Dai et al. 2024, section 3.2; with a
// gate: Qwen2-MoE): y = down(w · silu(gate(x)) · up(x)), w = sigmoid(gate's score), or 1 without a gate.
//
// Whole on every rank, for the rank's own n tokens of hidden size h; f is its width.
#pragma once

#include <ATen/core/Tensor.h>

#include "nn/parameters/parameter.h"

namespace penstock::nn {

struct Expert {
  Parameter* gate = nullptr;  // [f, h]
  Parameter* up = nullptr;    // [f, h]
  Parameter* down = nullptr;  // [h, f]
};

struct SharedExpert {
  Expert expert;
  Parameter* score = nullptr;  // [1, h]; null: every token has weight 1

  bool defined() const { return expert.gate != nullptr; }
};

// What one slice keeps for the backward. Undefined tensors are recomputed from the input.
struct SharedExpertRecord {
  at::Tensor weights;   // [n], accumulator type
  at::Tensor gate, up;  // [n, f]
  at::Tensor product;   // [n, f], w · silu(gate) · up
};

// The operands of the weight gradients of one slice, besides its input.
struct SharedExpertWeightRecord {
  at::Tensor grad_scores;  // [n, 1], accumulator type; only with a score
  at::Tensor grad_output;  // [n, h]
  at::Tensor product, grad_gate, grad_up;
};

// Computes weights, gate and up if the record lacks them.
void complete(const SharedExpert& shared, const at::Tensor& input, SharedExpertRecord& record);

// Adds y of a complete record to output [n, h], and sets the record's product.
void add_shared_expert(const SharedExpert& shared, at::Tensor& output, SharedExpertRecord& record);

// Adds the gradient of the input to grad_input [n, h]. Consumes a complete record.
SharedExpertWeightRecord add_shared_expert_backward(const SharedExpert& shared, const at::Tensor& grad_output,
                                                    SharedExpertRecord record, at::Tensor& grad_input);

// Adds the weight gradients of a slice.
void shared_expert_backward_weight(const SharedExpert& shared, const at::Tensor& input,
                                   SharedExpertWeightRecord pending);

}  // namespace penstock::nn
