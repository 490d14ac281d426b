// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/embedding.h"

#include "nn/kernels/cpu/element.h"

namespace penstock::nn::kernels {

void take_rows(at::Tensor& result, const at::Tensor& table, const mesh::Shard& shard,
               const at::Tensor& tokens) {
  const std::int64_t count = tokens.numel(), h = table.size(1);
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  for_element_type(table.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const Element* rows = table.const_data_ptr<Element>();
    Element* out = result.data_ptr<Element>();
    for_rows(count, h, [&](std::int64_t n) {
      if (shard.holds(ids[n])) std::copy_n(rows + (ids[n] - shard.begin) * h, h, out + n * h);
    });
  });
}

void add_rows_of_tokens(at::Tensor& grad_table, const mesh::Shard& shard, const at::Tensor& grad,
                        const at::Tensor& tokens) {
  const std::int64_t count = tokens.numel(), h = grad_table.size(1);
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  for_element_type(grad.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const Element* rows = grad.const_data_ptr<Element>();
    auto* sums = grad_table.data_ptr<Accumulator<Element>>();
    // Each task owns columns, so one task computes each sum over the tokens in order.
    at::parallel_for(0, h, rows_per_task(count), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = 0; n < count; ++n) {
        if (!shard.holds(ids[n])) continue;
        const Element* row = rows + n * h;
        auto* sum = sums + (ids[n] - shard.begin) * h;
        for (std::int64_t i = begin; i < end; ++i) sum[i] += Accumulator<Element>(row[i]);
      }
    });
  });
}

}  // namespace penstock::nn::kernels
