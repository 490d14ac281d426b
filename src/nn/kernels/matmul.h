// SPDX-License-Identifier: Apache-2.0
// The three products of a linear layer y = x · Wᵀ, W [out, in].
//
// In bf16 the weight gradient should be summed in f32 without rounding the product first. The fast way to do
// that depends on the machine (Bf16Products) and on nothing else, so results repeat bit for bit on a machine.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels {

enum class Bf16Products : std::uint8_t {
  Tiled,    // weight gradients by our own tiles with an f32 sum (AMD with AVX-512 bf16)
  Summed,   // weight gradients by a library's bf16 product with an f32 sum (MKL on Intel with AVX-512 bf16
            // or AMX; cuBLAS)
  Native,   // ATen's bf16 products; weight gradients rounded to bf16 per call, then added in f32
  Widened,  // no bf16 units: operands are widened to f32
};
Bf16Products fastest_bf16_products();  // on this machine

// x [N, in] → [N, out], in x's type.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight);
void product_into(at::Tensor& result, const at::Tensor& x, const at::Tensor& weight);

// Gradient of x: grad_output [N, out] → [N, in], in grad_output's type.
at::Tensor product_backward(const at::Tensor& grad_output, const at::Tensor& weight);
void product_backward_into(at::Tensor& result, const at::Tensor& grad_output, const at::Tensor& weight);

// The same in the accumulator type: summed in f32 where the machine has such a product (Summed, Widened),
// else rounded to bf16 once.
at::Tensor product_backward_wide(const at::Tensor& grad_output, const at::Tensor& weight);

// sum [N, in] += the gradient of x.
void add_product_backward(at::Tensor& sum, const at::Tensor& grad_output, const at::Tensor& weight);

// grad [out, in] (accumulator type) += grad_outputᵀ · x. All contiguous.
void accumulate_weight_gradient(at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& x,
                                Bf16Products products = fastest_bf16_products());

}  // namespace penstock::nn::kernels
