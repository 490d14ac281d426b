// SPDX-License-Identifier: Apache-2.0
// Reorders the rows of tokens by expert, and back (docs/moe.md, "The layer"): no token is dropped, and no
// order depends on timing.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace penstock::nn {

// R = n·k rows, one per token and slot, sorted by expert, then by token. Tensors are on the compute device.
struct ExpertOrder {
  std::vector<std::int64_t> counts;  // rows of each expert
  at::Tensor tokens;                 // [R] int64, the token of each row
  at::Tensor places;                 // [n, k] int64, the row of each token's slots
};

// experts [n, k] is in host memory, each token's in ascending order (route.h); there are `count` experts.
ExpertOrder order_by_expert(const at::Tensor& experts, std::int64_t count);

// Maps x [n, h] to [R, h].
at::Tensor rows_of_tokens(const at::Tensor& x, const ExpertOrder& order);

// Maps rows [R, h] to [n, h]: sums each token's rows in slot order, in the accumulator type, and rounds once.
// `beside` [n, h], in the accumulator type, is the first summand; may be undefined.
at::Tensor sums_of_rows(const at::Tensor& rows, const ExpertOrder& order, const at::Tensor& beside = {});

// One number per slot [n, k] to one per row [R], and back.
at::Tensor by_row(const at::Tensor& slots, const ExpertOrder& order);
at::Tensor by_slot(const at::Tensor& rows, const ExpertOrder& order);

}  // namespace penstock::nn
