// SPDX-License-Identifier: Apache-2.0
#include "model/memory/card_attention.h"

#include <algorithm>
#include <numeric>

#include "model/joined_keys.h"

namespace penstock::model {
namespace {

constexpr Bytes kBf16 = 2, kF32 = 4;  // bytes of a number

constexpr std::int64_t kHeads = 32;  // the most of one repeatable call

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
  const Tokens keys_block = keys_of_block(size.tokens, kRepeatableBlock);
  if (!setting.repeatable || (size.tokens <= kRepeatableBlock && keys <= keys_block))
    return {.scratch = call_scratch(setting, size, size.tokens, keys)};
  // One call of several, with what it returns.
  const Tokens queries = std::min(size.tokens, kRepeatableBlock), block = std::min(keys, keys_block);
  const std::int64_t rows = size.sequences * queries * size.heads;
  const std::int64_t kv_rows = size.sequences * block * size.kv_heads;
  const Bytes gradients = kBf16 * size.head_dim * (rows + 2 * kv_rows);
  return {.wide = true, .scratch = kF32 * rows + gradients + call_scratch(setting, size, queries, block)};
}

std::vector<std::span<const Tokens>> earlier_calls(const KernelSetting& setting, const AttentionSize& size) {
  const Tokens least = setting.card_attention() ? keys_at_once(size.tokens, setting.repeatable) : 0;
  return in_groups<Tokens>(size.earlier, joined_chunks(size.earlier, least));
}

Tokens keys_of(std::span<const Tokens> call) { return std::accumulate(call.begin(), call.end(), Tokens{0}); }

Bytes joined_keys_and_values(const AttentionSize& size, std::span<const Tokens> call) {
  if (call.size() == 1) return 0;
  return 2 * kBf16 * size.sequences * keys_of(call) * size.kv_heads * size.head_dim;
}

void attend_backward_joined(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                            std::span<const Tokens> call, bool begins) {
  const Tokens keys = keys_of(call);
  const CardBackward backward = card_backward(setting, size, keys);
  const std::int64_t kv_row = size.sequences * size.kv_heads * size.head_dim;
  const std::int64_t results = size.rows() * size.heads * size.head_dim + 2 * keys * kv_row;
  const Bytes held = joined_keys_and_values(size, call) + (backward.wide ? kF32 : kBf16) * results;
  tape.take(held);
  tape.touch(backward.scratch);
  // A slice's sums begin as a copy of its piece, even of results in f32.
  for (const Tokens length : call) {
    const Bytes sums = begins ? 2 * kF32 * length * kv_row : 0;
    tape.take(sums);
    tape.keep(sums);
  }
  tape.give(held);
}

}  // namespace penstock::model
