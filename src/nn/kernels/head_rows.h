// SPDX-License-Identifier: Apache-2.0
// Row-by-row access to [b, H, T, d] tensors of any strides whose rows of d elements are contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/error.h"

namespace penstock::nn::kernels {

struct HeadRows {
  std::int64_t heads, tokens;  // H, T

  explicit HeadRows(const at::Tensor& x) : heads(x.size(1)), tokens(x.size(2)) {}

  std::int64_t token(std::int64_t row) const { return row % tokens; }
  std::int64_t sequence(std::int64_t row) const { return row / tokens / heads; }

  // Offset of row `row` of b·H·T in a tensor with these strides, in elements.
  std::int64_t offset(std::int64_t row, at::IntArrayRef strides) const {
    return row / tokens / heads * strides[0] + row / tokens % heads * strides[1] + row % tokens * strides[2];
  }
};

inline void check_head_rows(const at::Tensor& x) {
  PENSTOCK_CHECK(x.dim() == 4 && x.stride(3) == 1, "heads are read as contiguous rows");
}

}  // namespace penstock::nn::kernels
