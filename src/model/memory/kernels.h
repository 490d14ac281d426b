// SPDX-License-Identifier: Apache-2.0
// Temporaries of the kernels called by an action: attention over chunks and matrix products. Those inside
// LibTorch's CPU kernels (2.11) and those of cuDNN's attention on Hopper (9.19) were determined by
// observation; tests compare the former with the allocator.
#pragma once

#include <vector>

#include "base/whole.h"
#include "model/memory/tape.h"
#include "model/shape.h"

namespace penstock::model {

// How bf16 products are computed (nn/kernels/matmul.h). Widened operands and results exist in f32 next to the
// narrow ones; rounded weight gradients exist before they are added; tiles use packed operands. With AMX
// LibTorch's products pack other operands than without.
enum class NarrowProducts : std::uint8_t { Tiled, Summed, SummedAmx, Rounded, Widened };

struct KernelSetting {
  Precision precision = Precision::BF16;
  NarrowProducts products = NarrowProducts::Rounded;
  bool tiled_attention = false;  // our own kernel (nn/kernels/cpu/attention/tiled.h), not ATen's
  int threads = 1;               // per rank; each thread has its own scratch
  bool card = false;             // attention in bf16 is cuDNN's, and products leave nothing
  bool repeatable = true;        // of a card: its attention's backward adds in a fixed order, by blocks

  bool narrow() const { return precision == Precision::BF16; }
  // Attention returns its results in the accumulator type.
  bool wide_attention() const { return tiled_attention || !narrow(); }
  bool summed() const { return products == NarrowProducts::Summed || products == NarrowProducts::SummedAmx; }
  bool widened() const { return narrow() && products == NarrowProducts::Widened; }
  bool widened_attention() const { return tiled_attention && widened(); }  // of copies in f32
  bool card_attention() const { return card && narrow(); }
  // Rows of a norm's gradient whose part of the weight's gradient is one sum (nn/kernels/rms_norm.h).
  std::int64_t norm_block_rows() const { return card ? 8 : 32; }
  // Rows of such sums for so many rows.
  std::int64_t norm_blocks(std::int64_t rows) const { return ceil_div(rows, norm_block_rows()); }
};

// What a card computes with instead.
inline KernelSetting on_card(KernelSetting setting, bool repeatable = true) {
  setting.card = true;
  setting.products = NarrowProducts::Summed;
  setting.tiled_attention = false;
  setting.repeatable = repeatable;
  return setting;
}

inline constexpr Bytes kTokenIdBytes = 8;

// Copies of operands of [rows, in] · [in, out].
Bytes product_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in, std::int64_t out);

// Leaves rows · width numbers of the accumulator type, [rows, in] · [in, width] (product_backward_wide).
void take_wide_product(Tape& tape, const KernelSetting& setting, std::int64_t rows, std::int64_t in,
                       std::int64_t width);

// For weight.gradient [out, in] += ...ᵀ · ... over `rows`.
Bytes weight_gradient_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in,
                              std::int64_t out);

// Attention of one layer and slice.
struct AttentionSize {
  std::int64_t sequences = 1;   // b
  Tokens tokens = 1;            // T
  std::vector<Tokens> earlier;  // lengths of the earlier slices, newest first
  std::int64_t heads = 1, kv_heads = 1, head_dim = 1;

  Tokens rows() const { return sequences * tokens; }
  std::int64_t group() const { return heads / kv_heads; }
};

// Leaves the attention output, in the compute type, and the log-sum-exp on the tape as temporaries.
void attend(Tape& tape, const KernelSetting& setting, const AttentionSize& size);

// Leaves the rotated query's gradient on the tape, whose bytes it returns: it is in the accumulator type if
// the kernel's results are or there are earlier slices. Leaves too the K,V gradients that begin here: this
// slice's own unless a later slice has begun them (`last_slice`), and then those of all earlier slices, which
// are kept.
Bytes attend_backward(Tape& tape, const KernelSetting& setting, const AttentionSize& size, bool last_slice);

// One call of the kernel for all queries of `size`, over so many keys; leaves nothing. The backward returns
// the bytes of its results.
void touch_attention(Tape& tape, const KernelSetting& setting, const AttentionSize& size, Tokens keys,
                     bool causal);
Bytes touch_attention_backward(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                               Tokens keys, bool causal);

// The backward of all queries of `size` over earlier keys, whose gradients are kept if they begin here;
// leaves nothing else.
void attend_backward_earlier(Tape& tape, const KernelSetting& setting, const AttentionSize& size, Tokens keys,
                             bool begins);

// Peak of attention for another device over `size.earlier` alone (nn/attention_service.h), including what is
// sent back.
Bytes served_temporaries(const KernelSetting& setting, const AttentionSize& size, bool backward);

}  // namespace penstock::model
