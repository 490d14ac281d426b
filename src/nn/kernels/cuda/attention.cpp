// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/attention.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "model/joined_keys.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention_work.h"
#include "nn/kernels/by_document.h"
#include "nn/kernels/cuda/flash.h"
#include "nn/kernels/cuda/plain_attention.h"

namespace penstock::nn::kernels {

namespace {

struct Block {
  std::int64_t begin, count;
  at::Tensor of(const at::Tensor& x) const { return x.narrow(2, begin, count); }
};

std::vector<Block> blocks_of(std::int64_t tokens, std::int64_t block) {
  std::vector<Block> blocks;
  for (std::int64_t begin = 0; begin < tokens; begin += block)
    blocks.push_back({begin, std::min(block, tokens - begin)});
  return blocks;
}

at::Tensor zeros_like_sum(const at::Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(at::kFloat)); }

void add(const Block& block, const at::Tensor& sum, const at::Tensor& part) {
  at::Tensor place = block.of(sum);
  accumulate(place, part);
}

}  // namespace

AttentionGradients cuda::flash_backward_by_blocks(const at::Tensor& grad_output, const at::Tensor& query,
                                                  const at::Tensor& key, const at::Tensor& value,
                                                  const AttentionPart& merged, Mask mask,
                                                  std::int64_t block) {
  const std::int64_t keys_block = mask == Mask::Causal ? block : model::keys_of_block(query.size(2), block);
  if (query.size(2) <= block && key.size(2) <= keys_block)
    return flash_backward(grad_output, query, key, value, merged, mask);
  AttentionGradients sums{zeros_like_sum(query), zeros_like_sum(key), zeros_like_sum(value)};
  for (const Block& queries : blocks_of(query.size(2), block)) {
    const AttentionPart part{queries.of(merged.output), queries.of(merged.log_sum_exp).contiguous()};
    for (const Block& keys : blocks_of(key.size(2), keys_block)) {
      if (mask == Mask::Causal && keys.begin > queries.begin) break;
      const bool diagonal = mask == Mask::Causal && keys.begin == queries.begin;
      const AttentionGradients of_block =
          flash_backward(queries.of(grad_output), queries.of(query), keys.of(key), keys.of(value), part,
                         diagonal ? Mask::Causal : Mask::None);
      add(queries, sums.query, of_block.query);
      add(keys, sums.key, of_block.key);
      add(keys, sums.value, of_block.value);
    }
  }
  return sums;
}

AttentionKernel fastest_attention(at::ScalarType /*type*/) { return AttentionKernel::Aten; }

std::int64_t keys_at_once(at::ScalarType type, std::int64_t queries) {
  return type == at::kBFloat16 ? model::keys_at_once(queries, cuda::must_repeat()) : 0;
}

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible, AttentionKernel kernel) {
  if (visible.starts.defined()) return attend_by_document(query, key, value, visible, kernel);
  const KernelTimer timer(Kernel::Attention, attention_work(query, key, visible, 2));
  const bool fused = query.scalar_type() == at::kBFloat16;
  return fused ? cuda::flash(query, key, value, visible.mask)
               : cuda::plain_attention(query, key, value, visible.mask);
}

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible,
                                   AttentionKernel kernel) {
  if (visible.starts.defined())
    return attend_by_document_backward(grad_output, query, key, value, merged, visible, kernel);
  const KernelTimer timer(Kernel::AttentionBackward, attention_work(query, key, visible, 4));
  const bool fused = query.scalar_type() == at::kBFloat16;
  if (fused && !cuda::must_repeat())
    return cuda::flash_backward(grad_output, query, key, value, merged, visible.mask);
  return fused ? cuda::flash_backward_by_blocks(grad_output, query, key, value, merged, visible.mask)
               : cuda::plain_attention_backward(grad_output, query, key, value, merged, visible.mask);
}

}  // namespace penstock::nn::kernels
