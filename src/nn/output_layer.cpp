// SPDX-License-Identifier: Apache-2.0
#include "nn/output_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "backend/memory.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/profile.h"
#include "nn/kernels/rms_norm.h"

namespace penstock::nn {
namespace {

// Calls work(first row, rows) for each tile.
template <class Work>
void for_tiles(std::int64_t tokens, std::int64_t tile, Work&& work) {
  for (std::int64_t begin = 0; begin < tokens; begin += tile) work(begin, std::min(tile, tokens - begin));
}

at::Tensor empty_logits(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options) {
  const backend::CategoryScope scope(model::Category::Logits);
  return at::empty({rows, columns}, options);
}

}  // namespace

at::Tensor logits_of(const at::Tensor& normed, const at::Tensor& matrix) {
  at::Tensor logits = empty_logits(normed.size(0), matrix.size(0), normed.options());
  kernels::product_into(logits, normed, matrix);
  return logits;
}

OutputResult output_forward(const OutputLayer& layer, const at::Tensor& hidden, const at::Tensor& targets,
                            double loss_scale) {
  const BlockScope scope(Block::Output);
  const auto [normed, scale] = kernels::rms_norm(hidden, layer.norm->weight, layer.norm_epsilon);
  at::Tensor grad_normed = at::empty_like(normed);
  OutputResult result;
  for_tiles(hidden.size(0), layer.tile_tokens, [&](std::int64_t begin, std::int64_t rows) {
    const at::Tensor tile = normed.narrow(0, begin, rows);
    at::Tensor logits = logits_of(tile, layer.matrix->weight);
    result.loss_sum +=
        kernels::cross_entropy_with_gradient(logits, targets.narrow(0, begin, rows), loss_scale);
    grad_normed.narrow(0, begin, rows).copy_(kernels::product_backward(logits, layer.matrix->weight));
    kernels::accumulate_weight_gradient(layer.matrix->gradient, logits, tile);
  });
  result.grad_hidden =
      kernels::rms_norm_backward(grad_normed, hidden, layer.norm->weight, scale, {}, layer.norm->gradient);
  return result;
}

kernels::LossSum output_loss(const OutputLayer& layer, const at::Tensor& hidden, const at::Tensor& targets) {
  const BlockScope scope(Block::Output);
  const at::Tensor normed = kernels::rms_norm(hidden, layer.norm->weight, layer.norm_epsilon).output;
  kernels::LossSum loss;
  for_tiles(hidden.size(0), layer.tile_tokens, [&](std::int64_t begin, std::int64_t rows) {
    const at::Tensor logits = logits_of(normed.narrow(0, begin, rows), layer.matrix->weight);
    loss += kernels::cross_entropy(logits, targets.narrow(0, begin, rows));
  });
  return loss;
}

at::Tensor output_logits(const OutputLayer& layer, const at::Tensor& hidden) {
  const at::Tensor normed = kernels::rms_norm(hidden, layer.norm->weight, layer.norm_epsilon).output;
  const at::Tensor logits = kernels::product(normed, layer.matrix->weight);
  return kernels::in_accumulator_type(logits);
}

}  // namespace penstock::nn
