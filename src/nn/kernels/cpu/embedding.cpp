// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/embedding.h"

#include <ATen/ops/empty.h>

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {
namespace {

void check_tokens(const std::int64_t* ids, std::int64_t count, std::int64_t vocabulary) {
  const bool known =
      std::all_of(ids, ids + count, [&](std::int64_t id) { return id >= 0 && id < vocabulary; });
  PENSTOCK_CHECK(known, "token ids lie inside the vocabulary");
}

}  // namespace

at::Tensor embed(const at::Tensor& table, const at::Tensor& tokens) {
  PENSTOCK_CHECK(table.is_contiguous() && tokens.is_contiguous(), "kernels read contiguous rows");
  const std::int64_t count = tokens.numel(), h = table.size(1);
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  check_tokens(ids, count, table.size(0));
  at::Tensor result = at::empty({count, h}, table.options());
  const KernelTimer timer(Kernel::Embedding, memory_work(result, result));
  for_element_type(table.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const Element* rows = table.const_data_ptr<Element>();
    Element* out = result.data_ptr<Element>();
    for_rows(count, h, [&](std::int64_t n) { std::copy_n(rows + ids[n] * h, h, out + n * h); });
  });
  return result;
}

void embed_held(at::Tensor& result, const at::Tensor& table, const mesh::Shard& shard,
                const at::Tensor& tokens) {
  PENSTOCK_CHECK(table.is_contiguous() && tokens.is_contiguous() && result.is_contiguous(),
                 "kernels read contiguous rows");
  const std::int64_t count = tokens.numel(), h = table.size(1);
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  const KernelTimer timer(Kernel::Embedding, memory_work(result));
  for_element_type(table.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    const Element* rows = table.const_data_ptr<Element>();
    Element* out = result.data_ptr<Element>();
    for_rows(count, h, [&](std::int64_t n) {
      if (shard.holds(ids[n])) std::copy_n(rows + (ids[n] - shard.begin) * h, h, out + n * h);
    });
  });
}

void accumulate_held_embedding_gradient(at::Tensor& grad_table, const mesh::Shard& shard,
                                        const at::Tensor& grad, const at::Tensor& tokens) {
  const KernelTimer timer(Kernel::EmbeddingBackward, memory_work(grad));
  PENSTOCK_CHECK(grad.is_contiguous() && tokens.is_contiguous(), "kernels read contiguous rows");
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
