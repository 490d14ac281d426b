// SPDX-License-Identifier: Apache-2.0
// Attention of one slice's queries over one chunk of keys and values, and its backward: flash attention (Dao
// 2023); on CPUs our own kernel where there are tile products, else ATen's. merge() combines the results of
// several chunks. The backwards take the merged output and log-sum-exp; their gradients are added.
//
// b sequences, H query heads, K key-value heads (H a multiple of K: head j reads key-value head j / (H/K)),
// T queries, C keys, head size d. Scores are scaled by 1/√d.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace penstock::nn::kernels {

enum class Mask : std::uint8_t {
  None,    // an earlier chunk: every query sees every key
  Causal,  // the slice's own chunk (C = T): query t sees keys 0..t
};

// Which keys of a chunk each query sees.
struct Visible {
  Visible(Mask kind = Mask::None) : mask(kind) {}  // NOLINT: converts
  Visible(Mask kind, at::Tensor document_starts, std::int64_t first)
      : mask(kind), starts(std::move(document_starts)), first_key(first) {}

  Mask mask;
  // Position where each query's document begins; the query sees no earlier keys (docs/data.md, "Masks").
  // [b, T] int64, last stride 1, ascending in each row. Undefined: one document.
  at::Tensor starts;
  std::int64_t first_key = 0;  // position of the chunk's first key
};

enum class AttentionKernel : std::uint8_t {
  Tiled,  // our own, for f32 and bf16, where oneDNN has tile products in that type or in f32; results in f32
  Aten,   // results in the compute type
};
AttentionKernel fastest_attention(at::ScalarType type);  // on this machine

// Target number of keys per call: earlier chunks are joined until they have this many. 0: one call per chunk.
std::int64_t keys_at_once(at::ScalarType type, std::int64_t queries);

struct AttentionPart {
  at::Tensor output;       // [b, H, T, d], last stride 1, in the compute type or its accumulator type
  at::Tensor log_sum_exp;  // [b, H, T] contiguous, accumulator type
};

// query [b, H, T, d] contiguous; key, value [b, K, C, d] with last stride 1. A query that sees no key gets
// output 0 and log-sum-exp -infinity.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible, AttentionKernel kernel);
inline AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible) {
  return attend(query, key, value, visible, fastest_attention(query.scalar_type()));
}

struct AttentionGradients {
  at::Tensor query;  // [b, H, T, d]; all three with last stride 1, in the compute or the accumulator type
  at::Tensor key;    // [b, K, C, d]
  at::Tensor value;
};

// `merged` is the result over all chunks; grad_output is [b, H, T, d]. If H > K, contiguous tensors avoid a
// copy.
AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible,
                                   AttentionKernel kernel);
inline AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                          const at::Tensor& key, const at::Tensor& value,
                                          const AttentionPart& merged, const Visible& visible) {
  return attend_backward(grad_output, query, key, value, merged, visible,
                         fastest_attention(query.scalar_type()));
}

}  // namespace penstock::nn::kernels
