// SPDX-License-Identifier: Apache-2.0
#include "nn/experts/expert_rows.h"

#include <ATen/ops/empty.h>

#include <numeric>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/embedding.h"
#include "nn/kernels/work.h"

namespace penstock::nn {
namespace {

template <class Element>
PENSTOCK_VECTORISED void add_row(const Element* row, std::int64_t width, kernels::Accumulator<Element>* sum) {
  for (std::int64_t i = 0; i < width; ++i) sum[i] += kernels::Accumulator<Element>(row[i]);
}

template <class Element>
PENSTOCK_VECTORISED void round_row(const kernels::Accumulator<Element>* sum, std::int64_t width,
                                   Element* row) {
  for (std::int64_t i = 0; i < width; ++i) row[i] = kernels::narrowed<Element>(sum[i]);
}

}  // namespace

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
  return order;
}

at::Tensor rows_of_tokens(const at::Tensor& x, const ExpertOrder& order) {
  const auto bytes = static_cast<double>(2 * order.tokens.numel() * x.size(1) * x.element_size());
  const KernelTimer timer(Kernel::Dispatch, {.bytes = bytes});
  return kernels::embed(x, order.tokens);
}

at::Tensor sums_of_rows(const at::Tensor& rows, const ExpertOrder& order, const at::Tensor& beside) {
  PENSTOCK_CHECK(rows.is_contiguous() && (!beside.defined() || beside.is_contiguous()),
                 "kernels read contiguous rows");
  const std::int64_t tokens = order.places.size(0), k = order.places.size(1), h = rows.size(1);
  at::Tensor result = at::empty({tokens, h}, rows.options());
  const KernelTimer timer(Kernel::Combine, kernels::memory_work(rows, result));
  const std::int64_t* places = order.places.const_data_ptr<std::int64_t>();
  kernels::for_element_type(rows.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Sum = kernels::Accumulator<Element>;
    const Element* from = rows.const_data_ptr<Element>();
    const Sum* first = beside.defined() ? beside.const_data_ptr<Sum>() : nullptr;
    Element* to = result.data_ptr<Element>();
    at::parallel_for(0, tokens, kernels::rows_per_task(h * k), [&](std::int64_t begin, std::int64_t end) {
      std::vector<Sum> sum(static_cast<std::size_t>(h));
      for (std::int64_t token = begin; token < end; ++token) {
        if (first) {
          std::copy_n(first + token * h, h, sum.begin());
        } else {
          std::ranges::fill(sum, Sum(0));
        }
        for (std::int64_t slot = 0; slot < k; ++slot)
          add_row(from + places[token * k + slot] * h, h, sum.data());
        round_row(sum.data(), h, to + token * h);
      }
    });
  });
  return result;
}

at::Tensor by_row(const at::Tensor& slots, const ExpertOrder& order) {
  return at::empty({slots.numel()}, slots.options())
      .index_copy_(0, order.places.view({-1}), slots.view({-1}));
}

at::Tensor by_slot(const at::Tensor& rows, const ExpertOrder& order) {
  return rows.index_select(0, order.places.view({-1})).view(order.places.sizes());
}

}  // namespace penstock::nn
