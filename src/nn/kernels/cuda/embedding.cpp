// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/embedding.h"

#include <ATen/ops/sort.h>

#include "nn/kernels/cuda/rows/embedding.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

void take_rows(at::Tensor& result, const at::Tensor& table, const mesh::Shard& shard,
               const at::Tensor& tokens) {
  for_element_type(table.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({table, result}, [&](auto width) {
      launch(TakeRows<Element, width>{read<Element>(table), read<std::int64_t>(tokens),
                                      write<Element>(result), shard.begin, shard.count, table.size(1)},
             tokens.numel());
    });
  });
}

void add_rows_of_tokens(at::Tensor& grad_table, const mesh::Shard& shard, const at::Tensor& grad,
                        const at::Tensor& tokens) {
  const auto [sorted, places] = at::sort(tokens.view({-1}), /*stable=*/true, 0, /*descending=*/false);
  for_element_type(grad.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({grad_table, grad}, [&, &ascending = sorted, &order = places](auto width) {
      launch(AddTokenRuns<Element, width>{write<Accumulator<Element>>(grad_table), read<Element>(grad),
                                          read<std::int64_t>(ascending), read<std::int64_t>(order),
                                          tokens.numel(), shard.begin, shard.count, grad_table.size(1)},
             tokens.numel());
    });
  });
}

}  // namespace penstock::nn::kernels
