// SPDX-License-Identifier: Apache-2.0
#include "nn/experts/expert_rows.h"

#include <ATen/ops/empty.h>

#include <numeric>

#include "backend/device.h"
#include "base/error.h"
#include "nn/kernels/embedding.h"
#include "nn/kernels/sum_parts.h"
#include "nn/kernels/work.h"

namespace penstock::nn {

ExpertOrder order_by_expert(const at::Tensor& experts, std::int64_t count) {
  PENSTOCK_CHECK(experts.is_contiguous(), "kernels read contiguous rows");
  const std::int64_t rows = experts.numel(), k = experts.size(1);
  const std::int64_t* chosen = experts.const_data_ptr<std::int64_t>();
  ExpertOrder order{std::vector<std::int64_t>(static_cast<std::size_t>(count)), at::empty({rows}, at::kLong),
                    at::empty(experts.sizes(), at::kLong)};
  for (std::int64_t i = 0; i < rows; ++i) {
    PENSTOCK_CHECK(chosen[i] >= 0 && chosen[i] < count, "tokens choose experts that are there");
    ++order.counts[chosen[i]];
  }
  std::vector<std::int64_t> next(order.counts.size());
  std::exclusive_scan(order.counts.begin(), order.counts.end(), next.begin(), std::int64_t{0});
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = next[chosen[i]]++;
    order.tokens.data_ptr<std::int64_t>()[row] = i / k;
    order.places.data_ptr<std::int64_t>()[i] = row;
  }
  order.tokens = backend::to_device(order.tokens);
  order.places = backend::to_device(order.places);
  return order;
}

at::Tensor rows_of_tokens(const at::Tensor& x, const ExpertOrder& order) {
  const auto bytes = static_cast<double>(2 * order.tokens.numel() * x.size(1) * x.element_size());
  const KernelTimer timer(Kernel::Dispatch, {.bytes = bytes});
  return kernels::embed(x, order.tokens);
}

at::Tensor sums_of_rows(const at::Tensor& rows, const ExpertOrder& order, const at::Tensor& beside) {
  return kernels::sum_placed_rows(rows, order.places, beside);
}

at::Tensor by_row(const at::Tensor& slots, const ExpertOrder& order) {
  return at::empty({slots.numel()}, slots.options())
      .index_copy_(0, order.places.view({-1}), slots.view({-1}));
}

at::Tensor by_slot(const at::Tensor& rows, const ExpertOrder& order) {
  return rows.index_select(0, order.places.view({-1})).view(order.places.sizes());
}

}  // namespace penstock::nn
