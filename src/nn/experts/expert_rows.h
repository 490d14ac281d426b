// SPDX-License-Identifier: Apache-2.0
// The rows of tokens in the order of their experts, and back (docs/moe.md, "The layer"): no token is dropped,
// and no order depends on time.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace penstock::nn {

// R = n·k rows, one for each token and slot: by expert, of an expert by token. The tensors are the compute
// device's.
struct ExpertOrder {
  std::vector<std::int64_t> counts;  // rows of each expert
  at::Tensor tokens;                 // [R] int64, the token of each row
  at::Tensor places;                 // [n, k] int64, the row of each token's slots
};

// experts: [n, k], the host's, each token's in ascending order (route.h), of `count` experts.
ExpertOrder order_by_expert(const at::Tensor& experts, std::int64_t count);

// x [n, h] to [R, h].
at::Tensor rows_of_tokens(const at::Tensor& x, const ExpertOrder& order);

// rows [R, h] to [n, h]: the sums of each token's rows in the order of its slots, formed in the accumulator
// type and rounded once. `beside` [n, h], of that type, comes before them; may be undefined.
at::Tensor sums_of_rows(const at::Tensor& rows, const ExpertOrder& order, const at::Tensor& beside = {});

// Numbers of slots [n, k] as numbers of rows [R], and back.
at::Tensor by_row(const at::Tensor& slots, const ExpertOrder& order);
at::Tensor by_slot(const at::Tensor& rows, const ExpertOrder& order);

}  // namespace penstock::nn
