// SPDX-License-Identifier: Apache-2.0
#include "model/memory/kernels.h"

#include <algorithm>

#include "base/whole.h"
#include "model/memory/gpu_attention.h"

namespace penstock::model {
namespace {

constexpr Bytes kWide = 4;  // bytes of an f32

// Rows and columns of a thread's score tile in flash attention.
struct ScoreTile {
  std::int64_t queries, keys;
};
ScoreTile score_tile(Tokens queries, Tokens keys) {
  const Tokens rows = queries >= 768 ? 256 : queries >= 192 ? 64 : 32;
  return {std::min(rows, queries), std::min<Tokens>(512, keys)};
}

Bytes forward_scratch(const KernelSetting& setting, Tokens queries, Tokens keys, std::int64_t d) {
  const auto [q, k] = score_tile(queries, keys);
  const Bytes wide = accumulator_size(setting.precision) * q * (k + 2 + d);
  return setting.threads * (wide + (setting.narrow() ? 2 * q * k : 0));
}

Bytes backward_scratch(const KernelSetting& setting, Tokens queries, Tokens keys, std::int64_t d) {
  const auto [q, k] = score_tile(queries, keys);
  const Bytes wide = accumulator_size(setting.precision) * q * (2 * k + 1);
  if (!setting.narrow()) return setting.threads * wide;
  // Narrow scores, and the packed operands of the matrix products.
  const std::int64_t packed = std::min<std::int64_t>(256, k);
  return setting.threads * (wide + 4 * q * k + 2 * q * packed + 128 * q + 4 * packed * d + 1156);
}

// oneDNN's narrow products use row blocks that divide the rows, and 64 columns.
constexpr std::int64_t kColumns = 64;
std::int64_t block_rows(std::int64_t rows) {
  std::int64_t block = std::min<std::int64_t>(256, rows);
  while (rows % block != 0) --block;
  return block;
}

// Tiles of our own kernel (nn/kernels/cpu/attention/tiles.h), and the multiple that their rows are padded to.
constexpr std::int64_t kTileQueries = 64, kTileKeys = 256, kTileRows = 32;
Bytes tile_element(const KernelSetting& setting) {
  return setting.widened_attention() ? kWide : element_size(setting.precision);
}

// Keys and values of a chunk, packed for the products.
Bytes packed_keys(const KernelSetting& setting, const AttentionSize& size, Tokens keys) {
  const std::int64_t tiles = size.sequences * size.kv_heads * ceil_div(keys, kTileKeys);
  return 2 * tiles * round_up(std::min(kTileKeys, keys), kTileRows) * size.head_dim * tile_element(setting);
}

// Per thread: one head's queries in all formats, their gradient and two numbers per row.
Bytes query_room(const KernelSetting& setting, const AttentionSize& size) {
  const std::int64_t threads = std::min<std::int64_t>(size.sequences * size.kv_heads, setting.threads);
  const std::int64_t tiles = ceil_div(size.tokens, kTileQueries);
  const std::int64_t rows = round_up(std::min(kTileQueries, size.tokens), kTileRows);
  const Bytes numbers = 4 * tile_element(setting) + kWide;
  return threads * tiles * (numbers * rows * size.head_dim + 2 * kTileQueries * kWide);
}

// Byte counts of one attention call and its operands.
struct Parts {
  Bytes element, accumulator;
  Bytes query;        // [b, H, T, d] in the compute type
  Bytes query_wide;   // in the accumulator type
  Bytes output;       // in the kernel's result type
  Bytes log_sum_exp;  // [b, H, T]
  std::int64_t kv_row;
  Bytes result;           // bytes per element of the kernel's result
  bool wide;              // the result is in the accumulator type
  bool copies;            // the kernel takes copies of its operands in the accumulator type
  Bytes gpu_scratch = 0;  // backward on a GPU only

  Parts(const KernelSetting& setting, const AttentionSize& size)
      : Parts(setting, size, setting.wide_attention()) {}
  Parts(const KernelSetting& setting, const AttentionSize& size, bool result_is_wide)
      : element(element_size(setting.precision)),
        accumulator(accumulator_size(setting.precision)),
        query(size.rows() * size.heads * size.head_dim * element),
        query_wide(size.rows() * size.heads * size.head_dim * accumulator),
        output(result_is_wide ? query_wide : query),
        log_sum_exp(size.rows() * size.heads * accumulator),
        kv_row(size.sequences * size.kv_heads * size.head_dim),
        result(result_is_wide ? accumulator : element),
        wide(result_is_wide),
        copies(setting.widened_attention()) {}

  Bytes keys(Tokens tokens) const { return tokens * kv_row * result; }
  Bytes keys_wide(Tokens tokens) const { return tokens * kv_row * accumulator; }
  // Copies of query, keys and values; in the backward also of the output and its gradient.
  Bytes forward_copies(Tokens keys) const { return copies ? query_wide + 2 * keys_wide(keys) : 0; }
  Bytes backward_copies(Tokens keys) const { return copies ? 3 * query_wide + 2 * keys_wide(keys) : 0; }
};

Parts backward_parts(const KernelSetting& setting, const AttentionSize& size, Tokens keys) {
  if (!setting.gpu_attention()) return {setting, size};
  const GpuBackward backward = gpu_backward(setting, size, keys);
  Parts parts(setting, size, backward.wide);
  parts.gpu_scratch = backward.scratch;
  return parts;
}

// Leaves one part's output and log-sum-exp.
void attend_causal(Tape& tape, const KernelSetting& setting, const AttentionSize& size, const Parts& parts) {
  if (setting.tiled_attention) {
    tape.touch(parts.forward_copies(size.tokens) + parts.output + parts.log_sum_exp +
               packed_keys(setting, size, size.tokens));
    return tape.take(parts.output + parts.log_sum_exp);
  }
  if (setting.gpu_attention()) {
    tape.take(parts.output + parts.log_sum_exp);
    return tape.touch(gpu_forward_scratch(setting, size));
  }
  const Bytes scratch = forward_scratch(setting, size.tokens, size.tokens, size.head_dim);
  tape.take(parts.output);
  if (size.group() == 1) {
    tape.take(parts.log_sum_exp);
    return tape.touch(scratch);
  }
  // One call per group member, gathered into one output.
  const Bytes member = (parts.output + parts.log_sum_exp) / size.group();
  tape.take(member);
  tape.touch(scratch);
  tape.take(parts.log_sum_exp);
  tape.give(member);
  tape.take(member);
  tape.touch(scratch);
  tape.give(member);
}

// LibTorch's kernel orders rows by token, then by head; a single head's are in both orders.
bool has_strided_folds(const AttentionSize& size) { return size.group() > 1 && size.kv_heads > 1; }

// In the backward it copies a gradient in the other order.
bool has_strided_gradient(const AttentionSize& size) {
  return size.group() > 1 ? has_strided_folds(size) : size.by_head && size.heads > 1;
}

void attend_chunk(Tape& tape, const KernelSetting& setting, const AttentionSize& size, const Parts& parts,
                  Tokens keys) {
  tape.take(parts.output + parts.log_sum_exp);
  if (setting.tiled_attention) {
    tape.touch(parts.forward_copies(keys) + packed_keys(setting, size, keys));
  } else if (setting.gpu_attention()) {
    tape.touch(gpu_forward_scratch(setting, size));
  } else {
    tape.touch(forward_scratch(setting, size.group() * size.tokens, keys, size.head_dim));
    if (has_strided_folds(size)) tape.touch(parts.output);  // folded queries are put back in order
  }
  tape.give(parts.output + parts.log_sum_exp);
}

// One call per group member; leaves the accumulators of keys and values.
void attend_backward_members(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                             const Parts& parts) {
  const Bytes scratch = backward_scratch(setting, size.tokens, size.tokens, size.head_dim);
  const Bytes keys = 2 * parts.keys(size.tokens), keys_wide = 2 * parts.keys_wide(size.tokens);
  // Every call copies its member of one strided operand.
  const Bytes member = parts.output / size.group() + keys, copy = parts.output / size.group();
  tape.take(parts.output + member);
  tape.touch(scratch + copy);
  tape.take(setting.narrow() ? keys_wide : 0);  // else the first member's gradients become the sums
  tape.give(setting.narrow() ? member : member - keys);
  tape.take(member);
  tape.touch(scratch + copy);
  tape.give(member);
}

void attend_backward_causal(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                            const Parts& parts, bool last_slice) {
  const Bytes keys = 2 * parts.keys(size.tokens), keys_wide = 2 * parts.keys_wide(size.tokens);
  const bool members = !setting.tiled_attention && !setting.gpu_attention() && size.group() > 1;
  const bool own = parts.wide || members;  // results already have the accumulator type
  if (members) {
    attend_backward_members(tape, setting, size, parts);
  } else if (setting.gpu_attention()) {
    tape.take(parts.output + keys);
    tape.touch(parts.gpu_scratch);
  } else {
    tape.take(parts.output + keys);
    const Bytes copy = has_strided_gradient(size) ? parts.output : 0;
    tape.touch(setting.tiled_attention
                   ? parts.backward_copies(size.tokens) + query_room(setting, size)
                   : copy + backward_scratch(setting, size.tokens, size.tokens, size.head_dim));
  }
  if (last_slice && !own) tape.take(keys_wide);
  if (last_slice && !own) tape.give(keys);
  if (!last_slice) tape.give(own ? keys_wide : keys);
}

void attend_backward_chunk(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                           const Parts& parts, Tokens length, bool begins) {
  const Bytes keys = 2 * parts.keys(length), keys_wide = 2 * parts.keys_wide(length);
  tape.take(parts.output + keys);
  if (setting.tiled_attention) {
    tape.touch(parts.backward_copies(length) + query_room(setting, size));
  } else if (setting.gpu_attention()) {
    tape.touch(parts.gpu_scratch);
  } else {
    // Folded queries' gradient is also put back in order, which takes no more.
    const Bytes copy = has_strided_gradient(size) ? parts.output : 0;
    tape.touch(copy + backward_scratch(setting, size.group() * size.tokens, length, size.head_dim));
  }
  const bool own = parts.wide;
  if (begins && !own) tape.take(keys_wide);
  if (begins) tape.keep(keys_wide);
  tape.give(parts.output + (begins && own ? 0 : keys));
}

// Per thread: panels of 64 columns, four 1 KiB tiles of sums, and their descriptors; deep products of many
// columns also hold f32 sums of a block of 128 columns. Small products need no scratch.
Bytes amx_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in, std::int64_t out) {
  if (rows * in * out <= 16 * 16 * 16) return 0;
  const bool deep = in >= 2048 && out > kColumns;
  const Bytes sums = deep ? kWide * std::min<Bytes>(256, round_up(rows, 128)) * 128 : 0;
  return setting.threads * (2 * kColumns * round_up(in, 32) + 4 * KiB + 640 + sums) + 384;
}

}  // namespace

Bytes product_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in, std::int64_t out) {
  if (setting.widened()) return kWide * (rows * in + in * out + rows * out);
  if (!setting.narrow() || setting.gpu) return 0;
  if (setting.products == NarrowProducts::SummedAmx) return amx_scratch(setting, rows, in, out);
  const std::int64_t depth = in <= 512 ? round_up(in, 32) : in < 1024 ? 512 : 1024;
  const std::int64_t block = block_rows(rows);
  return setting.threads * (kWide * block * std::min(out, kColumns) + 2 * kColumns * depth + 1024);
}

void take_wide_product(Tape& tape, const KernelSetting& setting, std::int64_t rows, std::int64_t in,
                       std::int64_t width) {
  const Bytes result = rows * width * accumulator_size(setting.precision);
  if (!setting.narrow() || setting.summed()) return tape.take(result);
  const Bytes operands =
      setting.widened() ? kWide * (rows * in + in * width) : rows * width * element_size(setting.precision);
  tape.take(operands);
  if (!setting.widened()) tape.touch(product_scratch(setting, rows, in, width));
  tape.take(result);
  tape.give(operands);
}

Bytes weight_gradient_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in,
                              std::int64_t out) {
  if (!setting.narrow() || setting.summed()) return 0;
  if (setting.widened()) return kWide * rows * (in + out);
  if (setting.products == NarrowProducts::Tiled) {
    // Panels of 1024 tokens: 64 columns of one side, 256 of the other (nn/kernels/tiled_products.cpp).
    return 2 * round_up(rows, 1024) * (round_up(out, 64) + round_up(in, 256));
  }
  // The rounded gradient, f32 sums of one block of it, and packed operands, one of them transposed.
  const std::int64_t block = block_rows(out), depth = std::min<std::int64_t>(512, round_up(rows, 32));
  const std::int64_t columns = rows <= 512 ? std::min(in, kColumns) : round_up(in, kColumns);
  const Bytes packed = 2 * kColumns * depth + 2 * block * (depth + (depth == 512 ? 32 : 0)) + 1152;
  return 2 * in * out + setting.threads * (kWide * block * columns + packed);
}

void attend(Tape& tape, const KernelSetting& setting, const AttentionSize& size) {
  const Parts parts(setting, size);
  attend_causal(tape, setting, size, parts);
  if (!size.earlier.empty() && !setting.wide_attention()) {
    tape.take(parts.query_wide);
    tape.give(parts.query);
  }
  for (const auto& call : earlier_calls(setting, size)) {
    const Bytes joined = joined_keys_and_values(size, call);
    tape.take(joined);
    attend_chunk(tape, setting, size, parts, keys_of(call));
    tape.give(joined);
  }
  const bool wide = setting.wide_attention() || !size.earlier.empty();
  if (setting.narrow() && wide) {
    tape.take(parts.query);
    tape.give(parts.query_wide);
  }
}

Bytes attend_backward(Tape& tape, const KernelSetting& setting, const AttentionSize& size, bool last_slice) {
  const Parts parts = backward_parts(setting, size, size.tokens);
  attend_backward_causal(tape, setting, size, parts, last_slice);
  if (size.earlier.empty()) return parts.output;
  if (!parts.wide) {
    tape.take(parts.query_wide);
    tape.give(parts.query);
  }
  for (const auto& call : earlier_calls(setting, size)) {
    call.size() > 1 ? attend_backward_joined(tape, setting, size, call, last_slice)
                    : attend_backward_earlier(tape, setting, size, call.front(), last_slice);
  }
  return parts.query_wide;
}

void touch_attention(Tape& tape, const KernelSetting& setting, const AttentionSize& size, Tokens keys,
                     bool causal) {
  const Parts parts(setting, size);
  if (!causal) return attend_chunk(tape, setting, size, parts, keys);
  attend_causal(tape, setting, size, parts);
  tape.give(parts.output + parts.log_sum_exp);
}

Bytes touch_attention_backward(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                               Tokens keys, bool causal) {
  const Parts parts = backward_parts(setting, size, keys);
  if (!causal) {
    attend_backward_chunk(tape, setting, size, parts, keys, false);
  } else {
    attend_backward_causal(tape, setting, size, parts, false);
    tape.give(parts.output);
  }
  return parts.output + 2 * parts.keys(keys);
}

void attend_backward_earlier(Tape& tape, const KernelSetting& setting, const AttentionSize& size, Tokens keys,
                             bool begins) {
  attend_backward_chunk(tape, setting, size, backward_parts(setting, size, keys), keys, begins);
}

Bytes served_temporaries(const KernelSetting& setting, const AttentionSize& size, bool backward) {
  const Parts parts(setting, size);
  const bool widens = setting.narrow() && !setting.wide_attention();
  const bool strided = !setting.tiled_attention;
  Tape tape;
  for (std::size_t i = 0; i < size.earlier.size(); ++i) {
    const Tokens keys = size.earlier[i];
    if (backward) {
      attend_backward_chunk(tape, setting, size, backward_parts(setting, size, keys), keys, false);
      // LibTorch's kernel returns gradients in another layout, so they are copied.
      if (strided) tape.touch(parts.output + 2 * parts.keys(keys) + 2 * parts.keys_wide(keys));
      tape.take(2 * parts.keys_wide(keys));
      if (i == 0) tape.take(parts.query_wide);
    } else {
      attend_chunk(tape, setting, size, parts, keys);
      if (i > 0 && strided) tape.touch(parts.output + 2 * parts.log_sum_exp);
      if (i == 0) tape.take(parts.output + parts.log_sum_exp);
      if (i == 1 && widens) tape.take(parts.query_wide - parts.output);
    }
  }
  // Converts to the layout and type that are sent.
  const bool wide = setting.wide_attention() || size.earlier.size() > 1;
  tape.touch(backward ? parts.query_wide : setting.narrow() && wide ? 2 * parts.query : parts.query);
  return tape.greatest_temporary();
}

}  // namespace penstock::model
