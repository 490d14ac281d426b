// SPDX-License-Identifier: Apache-2.0
// By which instructions tiled attention in bf16 computes its products.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace penstock::nn::kernels {

enum class Bf16Attention : std::uint8_t {
  Brgemm,  // oneDNN's batch-reduce products (tiled.cpp)
  Avx512,  // AVX-512's products of pairs (avx512.h)
  Amx,     // AMX's tiles (amx.h)
};

// The fastest for heads of this width [..., d] on this processor: own products need whole panels of columns.
Bf16Attention bf16_attention(const at::Tensor& query);

}  // namespace penstock::nn::kernels
