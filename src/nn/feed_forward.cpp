// SPDX-License-Identifier: Apache-2.0
#include "nn/feed_forward.h"

#include "nn/kernels/matmul.h"
#include "nn/kernels/profile.h"
#include "nn/kernels/swiglu.h"

namespace penstock::nn {

void expand(const FeedForward& block, LayerRecord& record) {
  const BlockScope scope(Block::FeedForward);
  if (record[Saved::Gate].defined()) return;
  const at::Tensor& input = record[Saved::Norm2Output];
  record[Saved::Gate] = kernels::product(input, block.gate->weight);
  record[Saved::Up] = kernels::product(input, block.up->weight);
}

at::Tensor feed_forward_output(const FeedForward& block, LayerRecord& record) {
  const BlockScope scope(Block::FeedForward);
  record[Saved::Product] = kernels::swiglu(record[Saved::Gate], record[Saved::Up]);
  return kernels::product(record[Saved::Product], block.down->weight);
}

at::Tensor feed_forward_backward_input(const FeedForward& block, const at::Tensor& grad_output,
                                       LayerRecord& record, WeightRecord& pending) {
  const BlockScope scope(Block::FeedForward);
  const at::Tensor grad_product = kernels::product_backward(grad_output, block.down->weight);
  const auto [grad_gate, grad_up] =
      kernels::swiglu_backward(grad_product, record[Saved::Gate], record[Saved::Up], record[Saved::Product]);
  at::Tensor grad_input = kernels::product_backward(grad_gate, block.gate->weight);
  kernels::add_product_backward(grad_input, grad_up, block.up->weight);
  pending.push_back({block.down, grad_output, record[Saved::Product]});
  pending.push_back({block.gate, grad_gate, record[Saved::Norm2Output]});
  pending.push_back({block.up, grad_up, record[Saved::Norm2Output]});
  return grad_input;
}

}  // namespace penstock::nn
