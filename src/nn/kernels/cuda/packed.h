// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace penstock::nn::kernels::cuda {

// Returns x with each stride the product of the later sizes, also in dimensions of size 1, whose strides
// LibTorch's contiguous() leaves as they are. A view if x is contiguous, else a copy.
inline at::Tensor packed(const at::Tensor& x) {
  const at::Tensor dense = x.contiguous();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(x.dim()));
  std::int64_t stride = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= x.sizes()[i];
  }
  return dense.as_strided(x.sizes(), strides);
}

}  // namespace penstock::nn::kernels::cuda
