// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/embedding.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "nn/kernels/work.h"

namespace penstock::nn::kernels {
namespace {

// A GPU's would have to be waited for.
void check_tokens_of_host(const at::Tensor& tokens, std::int64_t vocabulary) {
  if (!tokens.is_cpu()) return;
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  const bool known =
      std::all_of(ids, ids + tokens.numel(), [&](std::int64_t id) { return id >= 0 && id < vocabulary; });
  PENSTOCK_CHECK(known, "token ids lie inside the vocabulary");
}

}  // namespace

at::Tensor embed(const at::Tensor& table, const at::Tensor& tokens) {
  check_tokens_of_host(tokens, table.size(0));
  at::Tensor result = at::empty({tokens.numel(), table.size(1)}, table.options());
  embed_held(result, table, mesh::padded_block(table.size(0), 1, 0), tokens);
  return result;
}

void embed_held(at::Tensor& result, const at::Tensor& table, const mesh::Shard& shard,
                const at::Tensor& tokens) {
  PENSTOCK_CHECK(table.is_contiguous() && tokens.is_contiguous() && result.is_contiguous(),
                 "kernels read contiguous rows");
  const KernelTimer timer(Kernel::Embedding, memory_work(result, result));
  take_rows(result, table, shard, tokens);
}

void accumulate_held_embedding_gradient(at::Tensor& grad_table, const mesh::Shard& shard,
                                        const at::Tensor& grad, const at::Tensor& tokens) {
  const KernelTimer timer(Kernel::EmbeddingBackward, memory_work(grad));
  PENSTOCK_CHECK(grad.is_contiguous() && tokens.is_contiguous(), "kernels read contiguous rows");
  add_rows_of_tokens(grad_table, shard, grad, tokens);
}

}  // namespace penstock::nn::kernels
