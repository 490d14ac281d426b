// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/sharded_softmax.h"

#include <ATen/ops/empty.h>

#include "nn/kernels/cuda/rows/loss.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

template <class Number>
TileSoftmax combine(const at::Tensor& statistics, const at::Tensor& targets, std::int64_t held) {
  using Tokens = CombineTokens<Number>;
  const std::int64_t parts = statistics.size(0), tokens = targets.numel();
  const at::Tensor scale = at::empty({2, tokens}, statistics.options());
  at::Tensor losses = at::empty({tokens}, targets.options().dtype(at::kDouble));
  launch(Tokens{read<Number>(statistics), read<std::int64_t>(targets), write<Number>(scale),
                write<double>(losses), parts, tokens, held},
         parts_of(tokens, Tokens::kTokens));
  return {scale, LossSum(losses)};
}

}  // namespace

void statistics_of_rows(const at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                        at::Tensor& statistics) {
  const std::int64_t tokens = targets.numel();
  for_element_type(logits.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({logits}, [&](auto width) {
      launch(ShardStatisticsRows<Element, width>{read<Element>(logits), read<std::int64_t>(targets),
                                                 write<Accumulator<Element>>(statistics), tokens, shard.held,
                                                 shard.count, shard.begin},
             tokens);
    });
  });
}

TileSoftmax combine_statistics(const at::Tensor& statistics, const at::Tensor& targets, std::int64_t held) {
  const bool wide = statistics.scalar_type() == at::kDouble;
  return wide ? combine<double>(statistics, targets, held) : combine<float>(statistics, targets, held);
}

void gradient_of_rows(at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                      const at::Tensor& scale, double gradient_scale) {
  const std::int64_t tokens = targets.numel();
  for_element_type(logits.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({logits}, [&](auto width) {
      launch(ShardGradientRows<Element, width>{write<Element>(logits), read<std::int64_t>(targets),
                                               read<Accumulator<Element>>(scale), tokens, shard.held,
                                               shard.count, shard.begin, gradient_scale},
             tokens);
    });
  });
}

}  // namespace penstock::nn::kernels
