// SPDX-License-Identifier: Apache-2.0
// Selects the instructions with which tiled attention computes its products.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace penstock::nn::kernels {

enum class AttentionProducts : std::uint8_t {
  Brgemm,  // oneDNN's batch-reduce products (tiled.cpp)
  Avx2,    // our own AVX2 products for an f32 forward (avx2.h); the backward uses Brgemm
  Avx512,  // our own AVX-512 products of f32 or of bf16 pairs (avx512.h)
  Amx,     // AMX tiles of bf16 (amx.h)
};

// Returns the products that this processor supports for a head size and a multiplied_type()
// (tiled_products.h), fastest first. Our own products need head sizes of whole panels. The last is always
// Brgemm.
std::vector<AttentionProducts> possible_products(c10::ScalarType type, std::int64_t head_size);

}  // namespace penstock::nn::kernels
