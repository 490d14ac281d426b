// SPDX-License-Identifier: Apache-2.0
// By which instructions tiled attention computes its products.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace penstock::nn::kernels {

enum class AttentionProducts : std::uint8_t {
  Brgemm,  // oneDNN's batch-reduce products (tiled.cpp)
  Avx2,    // AVX2's own products of a forward in f32 (avx2.h); its backward is Brgemm's
  Avx512,  // AVX-512's own products, of f32 or of pairs of bf16 (avx512.h)
  Amx,     // AMX's tiles of bf16 (amx.h)
};

// Those that this processor has for heads of this size and a type in which it multiplies tiles
// (multiplied_type(), tiled_products.h), the fastest first: own products need whole panels of columns. The
// last is Brgemm.
std::vector<AttentionProducts> possible_products(c10::ScalarType type, std::int64_t head_size);

}  // namespace penstock::nn::kernels
