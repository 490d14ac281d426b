// SPDX-License-Identifier: Apache-2.0
#include "nn/embedding_shards.h"

#include <ATen/ops/zeros.h>

#include "nn/kernels/embedding.h"

namespace penstock::nn {

Rows EmbeddingShards::embed(const at::Tensor& tokens) const {
  const at::Tensor& table = own.front()->weight;
  if (group->shards() == 1) return {kernels::embed(table, tokens)};
  const std::int64_t h = table.size(1);
  return group->scatter_totals(
      tokens.numel(), h, table.scalar_type(), [&](std::int64_t first, std::int64_t count) {
        at::Tensor rows = at::zeros({count, h}, table.options());
        for (const Parameter* shard : own)
          kernels::embed_held(rows, shard->weight, shard->shard, tokens.narrow(0, first, count));
        return rows;
      });
}

void EmbeddingShards::add_gradient(const Rows& gradient, const at::Tensor& tokens) const {
  GatheredRows rows = group->gather(gradient, tokens.numel());
  for (Parameter* shard : own)
    kernels::accumulate_held_embedding_gradient(shard->gradient, shard->shard, rows.whole(), tokens);
}

}  // namespace penstock::nn
