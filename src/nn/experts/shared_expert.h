// SPDX-License-Identifier: Apache-2.0
// The expert that every token visits beside those that its router chose (Dai et al. 2024, section 3.2; with a
// gate: Qwen2-MoE): y = down(w · silu(gate(x)) · up(x)), w = sigmoid(gate's score), or 1 without a gate.
//
// Whole on every rank, for the rank's own n tokens of h numbers; f is its width.
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
  Parameter* score = nullptr;  // [1, h]; none: every token has the weight 1

  bool defined() const { return expert.gate != nullptr; }
};

// What one slice keeps for the backward. Undefined tensors are formed again, from the input.
struct SharedExpertRecord {
  at::Tensor weights;   // [n], accumulator type
  at::Tensor gate, up;  // [n, f]
  at::Tensor product;   // [n, f], w · silu(gate) · up
};

// The operands of the weight gradients of one slice, besides its input.
struct SharedExpertWeightRecord {
  at::Tensor grad_scores;  // [n, 1], accumulator type, with a score alone
  at::Tensor grad_output;  // [n, h]
  at::Tensor product, grad_gate, grad_up;
};

// Weights, gate and up, as far as the record lacks them.
void complete(const SharedExpert& shared, const at::Tensor& input, SharedExpertRecord& record);

// output [n, h] += y, of a complete record, which gets its product.
void add_shared_expert(const SharedExpert& shared, at::Tensor& output, SharedExpertRecord& record);

// grad_input [n, h] += the gradient of the input. Consumes a complete record.
SharedExpertWeightRecord add_shared_expert_backward(const SharedExpert& shared, const at::Tensor& grad_output,
                                                    SharedExpertRecord record, at::Tensor& grad_input);

// Adds the weight gradients of a slice.
void shared_expert_backward_weight(const SharedExpert& shared, const at::Tensor& input,
                                   SharedExpertWeightRecord pending);

}  // namespace penstock::nn
