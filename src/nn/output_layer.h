// SPDX-License-Identifier: Apache-2.0
// The final norm, the output matrix and the loss. The scale of the loss is known before the step, so the
// forward visit also computes the gradients, tile by tile of tokens, and logits never outlive a tile
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

// hidden [N, h], targets [N] int64 (-1: none). Adds the gradients of the norm and of the matrix.
OutputResult output_forward(const OutputLayer& layer, const at::Tensor& hidden, const at::Tensor& targets,
                            double loss_scale);

// The loss alone.
kernels::LossSum output_loss(const OutputLayer& layer, const at::Tensor& hidden, const at::Tensor& targets);

// normed [N, h] times matrixᵀ [h, rows of the vocabulary]; only the result counts as logits.
at::Tensor logits_of(const at::Tensor& normed, const at::Tensor& matrix);

// [N, V] in f32 (f64 for f64).
at::Tensor output_logits(const OutputLayer& layer, const at::Tensor& hidden);

}  // namespace penstock::nn
