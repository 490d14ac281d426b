// SPDX-License-Identifier: Apache-2.0
#include "model/memory/gpu_attention.h"

#include <algorithm>
#include <numeric>

#include "model/joined_keys.h"

namespace penstock::model {
namespace {

constexpr Bytes kBf16 = 2, kF32 = 4;  // bytes of a number

constexpr std::int64_t kHeads = 32;             // upper bound per repeatable call
constexpr std::int64_t kMultiprocessors = 132;  // of an H100 or H200

// The gradients of grouped keys and values per query head, for `heads` query heads of all sequences.
Bytes spread_gradients(const AttentionSize& size, std::int64_t heads, Tokens keys) {
  return size.group() > 1 ? 2 * kBf16 * heads * keys * size.head_dim : 0;
}

// A call's results: gradients of queries, keys and values with `number` bytes each.
Bytes results(const AttentionSize& size, Tokens queries, Tokens keys, Bytes number) {
  return number * size.sequences * size.head_dim * (queries * size.heads + 2 * keys * size.kv_heads);
}

// The query gradients in f32, or if repeatable the products that are added in order; the gradients of grouped
// keys and values per query head; δ; and packed log-sum-exps if a call takes some heads of several sequences.
Bytes call_scratch(const KernelSetting& setting, const AttentionSize& size, Tokens queries, Tokens keys) {
  const std::int64_t at_once = std::max<std::int64_t>(kHeads / size.group(), 1) * size.group();
  const std::int64_t of_call = setting.repeatable ? std::min(size.heads, at_once) : size.heads;
  const std::int64_t heads = size.sequences * of_call;
  const bool copies = size.sequences > 1 && of_call < size.heads;
  const Bytes sums =
      setting.repeatable ? kBf16 * heads * queries * keys : kF32 * heads * queries * size.head_dim;
  return sums + spread_gradients(size, heads, keys) + (copies ? 2 : 1) * kF32 * heads * queries;
}

// FlashAttention's workspace: query gradients in f32 (a repeatable call has one copy per split of the keys
// over the multiprocessors), key and value gradients per query head if heads are grouped, and δ. Rows are
// padded to tiles.
Bytes flash_scratch(const KernelSetting& setting, const AttentionSize& size, Tokens queries, Tokens keys) {
  constexpr Tokens kTile = 128;
  const std::int64_t heads = size.sequences * size.heads, rows = round_up(queries, kTile) * heads;
  const std::int64_t sums = setting.repeatable ? ceil_div(kMultiprocessors, heads) : 1;
  return kF32 * rows * (sums * round_up(size.head_dim, std::int64_t{32}) + 1) +
         spread_gradients(size, heads, keys);
}

// Gradients of all documents are f32 sums. Per call, for a document that covers a sequence: copies of
// queries, output and output gradient, the call's results, and the workspace of cuDNN or FlashAttention,
// whichever needs more, since the kernel depends on the document's length.
GpuBackward backward_by_document(KernelSetting setting, AttentionSize size, Tokens keys) {
  setting.by_document = false;
  size.sequences = 1;
  const GpuBackward call = gpu_backward(setting, size, keys);
  const Bytes copies = size.tokens * size.heads * (3 * kBf16 * size.head_dim + kF32);
  const Tokens queries = setting.repeatable ? std::min(size.tokens, kRepeatableBlock) : size.tokens;
  const Bytes scratch = std::max(call.scratch, flash_scratch(setting, size, queries, keys));
  return {.wide = true,
          .scratch = copies + results(size, size.tokens, keys, call.wide ? kF32 : kBf16) + scratch};
}

}  // namespace

Bytes gpu_forward_scratch(const KernelSetting& setting, const AttentionSize& size) {
  if (!setting.by_document) return 0;
  return size.tokens * size.heads * (2 * kBf16 * size.head_dim + kF32);
}

GpuBackward gpu_backward(const KernelSetting& setting, const AttentionSize& size, Tokens keys) {
  if (setting.by_document) return backward_by_document(setting, size, keys);
  const Tokens keys_block = keys_of_block(size.tokens, kRepeatableBlock);
  if (!setting.repeatable || (size.tokens <= kRepeatableBlock && keys <= keys_block))
    return {.scratch = call_scratch(setting, size, size.tokens, keys)};
  // One of several calls, with its results.
  const Tokens queries = std::min(size.tokens, kRepeatableBlock), block = std::min(keys, keys_block);
  const Bytes log_sum_exp = kF32 * size.sequences * queries * size.heads;
  return {.wide = true,
          .scratch = log_sum_exp + results(size, queries, block, kBf16) +
                     call_scratch(setting, size, queries, block)};
}

std::vector<std::span<const Tokens>> earlier_calls(const KernelSetting& setting, const AttentionSize& size) {
  const bool joins = setting.gpu_attention() && !setting.by_document;
  const Tokens least = joins ? keys_at_once(size.tokens, setting.repeatable) : 0;
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
  const GpuBackward backward = gpu_backward(setting, size, keys);
  const std::int64_t kv_row = size.sequences * size.kv_heads * size.head_dim;
  const Bytes held =
      joined_keys_and_values(size, call) + results(size, size.tokens, keys, backward.wide ? kF32 : kBf16);
  tape.take(held);
  tape.touch(backward.scratch);
  // A slice's accumulators start as a copy of its piece, even if the results are f32.
  for (const Tokens length : call) {
    const Bytes sums = begins ? 2 * kF32 * length * kv_row : 0;
    tape.take(sums);
    tape.keep(sums);
  }
  tape.give(held);
}

}  // namespace penstock::model
