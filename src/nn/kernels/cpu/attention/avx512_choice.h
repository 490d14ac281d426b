// SPDX-License-Identifier: Apache-2.0
// Which attention in bf16 is computed by AVX-512's instructions (avx512.h), and not by oneDNN's tiles.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::nn::kernels::avx512 {

// On processors with avx512_bf16 and without AMX, whose tiles oneDNN uses; heads of whole panels of columns.
bool fits(const at::Tensor& query);  // [..., d]

}  // namespace penstock::nn::kernels::avx512
