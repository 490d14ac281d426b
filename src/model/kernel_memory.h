// SPDX-License-Identifier: Apache-2.0
// Temporaries of the kernels that an action calls: attention over chunks and matrix products. What LibTorch's
// CPU kernels take inside is theirs to choose and was read off them (2.11); tests hold it to the allocator.
#pragma once

#include <vector>

#include "model/shape.h"
#include "model/tape.h"

namespace penstock::model {

// How products in bf16 are formed (nn/kernels/matmul.h). Widened operands and results exist in f32 beside the
// narrow ones; rounded weight gradients exist before they are added; tiles work on packed operands.
enum class NarrowProducts : std::uint8_t { Tiled, Summed, Rounded, Widened };

struct KernelSetting {
  Precision precision = Precision::BF16;
  NarrowProducts products = NarrowProducts::Rounded;
  bool tiled_attention = false;  // our own kernel (nn/kernels/tiled_attention.h), not ATen's
  int threads = 1;               // of a rank: scratch is of each thread

  bool narrow() const { return precision == Precision::BF16; }
  // Attention's results come in the accumulator type.
  bool wide_attention() const { return tiled_attention || !narrow(); }
  bool widened() const { return narrow() && products == NarrowProducts::Widened; }
};

inline constexpr Bytes kTokenIdBytes = 8;
inline constexpr Bytes kNormBlockRows = 32;  // whose weight gradients share a sum (nn/kernels/rms_norm.cpp)

// Operand copies of [rows, in] · [in, out].
Bytes product_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in, std::int64_t out);

// Leaves rows · width numbers of the accumulator type, [rows, in] · [in, width] (product_backward_wide).
void take_wide_product(Tape& tape, const KernelSetting& setting, std::int64_t rows, std::int64_t in,
                       std::int64_t width);

// Of weight.gradient [out, in] += ...ᵀ · ... over `rows`.
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

// Leaves the attention output in the compute type and the log-sum-exp on the tape, as temporaries.
void attend(Tape& tape, const KernelSetting& setting, const AttentionSize& size);

// The rotated query's gradient is left on the tape, in the accumulator type where there are earlier slices;
// so are K,V gradients that begin here: this slice's own where no later slice has begun them (`last_slice`),
// and then those of all earlier ones, which are kept.
void attend_backward(Tape& tape, const KernelSetting& setting, const AttentionSize& size, bool last_slice);

// What attention for another device to `size.earlier` alone takes at most (nn/attention_service.h), what is
// sent back included.
Bytes served_temporaries(const KernelSetting& setting, const AttentionSize& size, bool backward);

}  // namespace penstock::model
