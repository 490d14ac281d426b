// SPDX-License-Identifier: Apache-2.0
#include "nn/experts/shared_expert.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/swiglu.h"

namespace penstock::nn {
namespace {

at::Tensor weights_of(const SharedExpert& shared, const at::Tensor& input) {
  if (shared.score)
    return at::sigmoid(kernels::product(kernels::in_accumulator_type(input),
                                        kernels::in_accumulator_type(shared.score->weight)))
        .view({-1});
  return at::ones({input.size(0)}, input.options().dtype(kernels::accumulator_type(input.scalar_type())));
}

}  // namespace

void complete(const SharedExpert& shared, const at::Tensor& input, SharedExpertRecord& record) {
  if (record.gate.defined()) return;
  record.weights = weights_of(shared, input);
  record.gate = kernels::product(input, shared.expert.gate->weight);
  record.up = kernels::product(input, shared.expert.up->weight);
}

void add_shared_expert(const SharedExpert& shared, at::Tensor& output, SharedExpertRecord& record) {
  record.product = kernels::weighted_swiglu(record.gate, record.up, record.weights);
  output.add_(kernels::product(record.product, shared.expert.down->weight));
}

SharedExpertWeightRecord add_shared_expert_backward(const SharedExpert& shared, const at::Tensor& grad_output,
                                                    SharedExpertRecord record, at::Tensor& grad_input) {
  at::Tensor grad_product = kernels::product_backward(grad_output, shared.expert.down->weight);
  const at::Tensor of_weights =
      kernels::weighted_swiglu_backward(grad_product, record.gate, record.up, record.weights, record.product);
  grad_product.reset();
  SharedExpertWeightRecord pending{.grad_output = grad_output,
                                   .product = std::move(record.product),
                                   .grad_gate = std::move(record.gate),
                                   .grad_up = std::move(record.up)};
  kernels::add_product_backward(grad_input, pending.grad_gate, shared.expert.gate->weight);
  kernels::add_product_backward(grad_input, pending.grad_up, shared.expert.up->weight);
  if (shared.score) {
    pending.grad_scores = at::sigmoid_backward(of_weights, record.weights).view({-1, 1});
    grad_input.addmm_(pending.grad_scores.to(grad_input.scalar_type()), shared.score->weight);
  }
  return pending;
}

void shared_expert_backward_weight(const SharedExpert& shared, const at::Tensor& input,
                                   SharedExpertWeightRecord pending) {
  const Expert& expert = shared.expert;
  kernels::accumulate_weight_gradient(expert.down->gradient, pending.grad_output, pending.product);
  kernels::accumulate_weight_gradient(expert.gate->gradient, pending.grad_gate, input);
  kernels::accumulate_weight_gradient(expert.up->gradient, pending.grad_up, input);
  if (shared.score)
    kernels::accumulate_weight_gradient(shared.score->gradient, pending.grad_scores,
                                        kernels::in_accumulator_type(input));
}

}  // namespace penstock::nn
