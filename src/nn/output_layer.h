// SPDX-License-Identifier: Apache-2.0
// The final norm, the output matrix and the loss. The loss scale is known before the step, so the forward
// also computes the gradients, one tile of tokens at a time, and logits never outlive a tile
// (docs/slimpipe.md, "The vocabulary over all devices").
#pragma once

#include "model/shape.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/parameters/parameter.h"

namespace penstock::nn {

struct OutputLayer {
  Parameter* norm = nullptr;
  Parameter* matrix = nullptr;
  double norm_epsilon = 1e-5;
  std::int64_t tile_tokens = model::usual_loss_tile(false);
};

struct OutputResult {
  kernels::LossSum loss_sum;  // over the targets, unscaled
  at::Tensor grad_hidden;     // [N, h], times loss_scale
};

// hidden [N, h], targets [N] int64 (-1: no target). Adds the gradients of the norm and of the matrix.
OutputResult output_forward(const OutputLayer& layer, const at::Tensor& hidden, const at::Tensor& targets,
                            double loss_scale);

// Computes the loss only.
kernels::LossSum output_loss(const OutputLayer& layer, const at::Tensor& hidden, const at::Tensor& targets);

// Returns normed [N, h] · matrixᵀ [h, rows of the vocabulary]. Only the result counts as logits.
at::Tensor logits_of(const at::Tensor& normed, const at::Tensor& matrix);

// [N, V] in f32 (f64 for f64).
at::Tensor output_logits(const OutputLayer& layer, const at::Tensor& hidden);

}  // namespace penstock::nn
