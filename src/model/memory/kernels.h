// SPDX-License-Identifier: Apache-2.0
// Temporaries of the kernels that an action calls: attention over chunks and matrix products. The numbers for
// LibTorch's CPU kernels (2.11) and cuDNN's attention on Hopper (9.19) were determined by observation; tests
// compare the former with the allocator.
#pragma once

#include <vector>

#include "base/whole.h"
#include "model/memory/tape.h"
#include "model/shape.h"

namespace penstock::model {

// How bf16 products are computed (nn/kernels/matmul.h). Widened: f32 copies of operands and results. Rounded:
// a bf16 weight gradient before it is added. Tiled: packed operands. SummedAmx: LibTorch's products pack
// other operands than without AMX.
enum class NarrowProducts : std::uint8_t { Tiled, Summed, SummedAmx, Rounded, Widened };

struct KernelSetting {
  Precision precision = Precision::BF16;
  NarrowProducts products = NarrowProducts::Rounded;
  bool tiled_attention = false;  // our own kernel (nn/kernels/cpu/attention/tiled.h), not ATen's
  int threads = 1;               // per rank; each thread has its own scratch
  bool gpu = false;              // bf16 attention is cuDNN's, and products need no scratch
  bool repeatable = true;        // GPU only: attention's backward adds in a fixed order, by blocks
  // One attention call per document. Set on GPUs; ATen's kernel on the CPU (f64) has such calls too, whose
  // copies are not modelled.
  bool by_document = false;

  bool narrow() const { return precision == Precision::BF16; }
  // Attention returns its results in the accumulator type.
  bool wide_attention() const { return tiled_attention || !narrow(); }
  bool summed() const { return products == NarrowProducts::Summed || products == NarrowProducts::SummedAmx; }
  bool widened() const { return narrow() && products == NarrowProducts::Widened; }
  bool widened_attention() const { return tiled_attention && widened(); }  // on f32 copies
  bool gpu_attention() const { return gpu && narrow(); }
  // Rows of a norm's gradient per partial sum of the weight gradient (nn/kernels/rms_norm.h).
  std::int64_t norm_block_rows() const { return gpu ? 8 : 32; }
  // Number of partial sums for `rows` rows.
  std::int64_t norm_blocks(std::int64_t rows) const { return ceil_div(rows, norm_block_rows()); }
};

// The setting for a GPU.
inline KernelSetting on_gpu(KernelSetting setting, bool repeatable = true, bool by_document = false) {
  setting.gpu = true;
  setting.products = NarrowProducts::Summed;
  setting.tiled_attention = false;
  setting.repeatable = repeatable;
  setting.by_document = by_document;
  return setting;
}

inline constexpr Bytes kTokenIdBytes = 8;

// Scratch of a product [rows, in] · [in, out], such as copies of operands.
Bytes product_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in, std::int64_t out);

// Leaves the product [rows, in] · [in, width] in the accumulator type (product_backward_wide).
void take_wide_product(Tape& tape, const KernelSetting& setting, std::int64_t rows, std::int64_t in,
                       std::int64_t width);

// Scratch of weight.gradient [out, in] += ...ᵀ · ... over `rows`.
Bytes weight_gradient_scratch(const KernelSetting& setting, std::int64_t rows, std::int64_t in,
                              std::int64_t out);

// Attention of one layer and slice.
struct AttentionSize {
  std::int64_t sequences = 1;   // b
  Tokens tokens = 1;            // T
  std::vector<Tokens> earlier;  // lengths of the earlier slices, newest first
  std::int64_t heads = 1, kv_heads = 1, head_dim = 1;
  bool by_head = false;  // rows are in the order of heads, then tokens; else of tokens, then heads

  Tokens rows() const { return sequences * tokens; }
  std::int64_t group() const { return heads / kv_heads; }
};

// Leaves the attention output, in the compute type, and the log-sum-exp on the tape as temporaries.
void attend(Tape& tape, const KernelSetting& setting, const AttentionSize& size);

// Leaves the rotated query's gradient on the tape and returns its bytes; it is in the accumulator type if the
// kernel's results are or if there are earlier slices. If `last_slice`, it also leaves the K and V
// gradients: its own, and the earlier slices', which are kept. Otherwise a later slice has allocated them.
Bytes attend_backward(Tape& tape, const KernelSetting& setting, const AttentionSize& size, bool last_slice);

// One kernel call for all queries of `size` over `keys` keys; leaves nothing. The backward returns the bytes
// of its results.
void touch_attention(Tape& tape, const KernelSetting& setting, const AttentionSize& size, Tokens keys,
                     bool causal);
Bytes touch_attention_backward(Tape& tape, const KernelSetting& setting, const AttentionSize& size,
                               Tokens keys, bool causal);

// The backward of all queries of `size` over earlier keys. With `begins` it allocates and keeps the keys' and
// values' gradients; leaves nothing else.
void attend_backward_earlier(Tape& tape, const KernelSetting& setting, const AttentionSize& size, Tokens keys,
                             bool begins);

// Peak of attention for another device over `size.earlier` alone (nn/attention_service.h), including the
// reply.
Bytes served_temporaries(const KernelSetting& setting, const AttentionSize& size, bool backward);

}  // namespace penstock::model
