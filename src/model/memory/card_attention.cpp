// SPDX-License-Identifier: Apache-2.0
#include "model/memory/card_attention.h"

#include <algorithm>

namespace penstock::model {
namespace {

constexpr Bytes kBf16 = 2, kF32 = 4;  // bytes of a number

// The most queries and keys of one repeatable call, and its heads.
constexpr Tokens kBlock = 8192;
constexpr std::int64_t kHeads = 32;

// Gradients of the queries in f32, or the products that are added in order; those of grouped keys and values
// for each query head; δ; and the log-sum-exps of some heads of several sequences, which are not packed.
Bytes call_scratch(const KernelSetting& setting, const AttentionSize& size, Tokens queries, Tokens keys) {
  const std::int64_t at_once = std::max<std::int64_t>(kHeads / size.group(), 1) * size.group();
  const std::int64_t of_call = setting.repeatable ? std::min(size.heads, at_once) : size.heads;
  const std::int64_t heads = size.sequences * of_call;
  const bool copies = size.sequences > 1 && of_call < size.heads;
  const Bytes sums =
      setting.repeatable ? kBf16 * heads * queries * keys : kF32 * heads * queries * size.head_dim;
  const Bytes spread = size.group() > 1 ? 2 * kBf16 * heads * keys * size.head_dim : 0;
  return sums + spread + (copies ? 2 : 1) * kF32 * heads * queries;
}

}  // namespace

CardBackward card_backward(const KernelSetting& setting, const AttentionSize& size, Tokens keys) {
  if (!setting.repeatable || std::max(size.tokens, keys) <= kBlock)
    return {.scratch = call_scratch(setting, size, size.tokens, keys)};
  // One call of several, with what it returns.
  const Tokens queries = std::min(size.tokens, kBlock), block = std::min(keys, kBlock);
  const std::int64_t rows = size.sequences * queries * size.heads;
  const std::int64_t kv_rows = size.sequences * block * size.kv_heads;
  const Bytes gradients = kBf16 * size.head_dim * (rows + 2 * kv_rows);
  return {.wide = true, .scratch = kF32 * rows + gradients + call_scratch(setting, size, queries, block)};
}

}  // namespace penstock::model
