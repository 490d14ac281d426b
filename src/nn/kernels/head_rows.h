// SPDX-License-Identifier: Apache-2.0
// Row-by-row access to [b, H, T, d] tensors of any strides whose rows of d elements are contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/error.h"

namespace penstock::nn::kernels {

// The rows of tensors of one shape, in the order in which the first lies in memory: attention writes its
// output token by token, so that rows of one head lie far apart.
struct HeadRows {
  std::int64_t heads, tokens;  // H, T
  bool by_token;

  explicit HeadRows(const at::Tensor& x)
      : heads(x.size(1)), tokens(x.size(2)), by_token(x.stride(1) < x.stride(2)) {}

  struct Row {
    std::int64_t sequence, head, token;

    // Offset in a tensor with these strides, in elements.
    std::int64_t offset(at::IntArrayRef strides) const {
      return sequence * strides[0] + head * strides[1] + token * strides[2];
    }
  };
  Row operator[](std::int64_t i) const {
    const std::int64_t inner = by_token ? heads : tokens, outer = i / inner, within = i % inner;
    const std::int64_t runs = by_token ? tokens : heads, sequence = outer / runs, run = outer % runs;
    return by_token ? Row{sequence, within, run} : Row{sequence, run, within};
  }

  // Index among b·H·T values, or b·H·length of which these are the first T of each head.
  std::int64_t index(const Row& row) const { return index(row, tokens); }
  std::int64_t index(const Row& row, std::int64_t length) const {
    return (row.sequence * heads + row.head) * length + row.token;
  }
};

inline void check_head_rows(const at::Tensor& x) {
  PENSTOCK_CHECK(x.dim() == 4 && x.stride(3) == 1, "heads are read as contiguous rows");
}

}  // namespace penstock::nn::kernels
