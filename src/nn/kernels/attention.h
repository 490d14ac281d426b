// SPDX-License-Identifier: Apache-2.0
// Attention of one slice's queries over one chunk of keys and values, and its backward: flash attention (Dao
// 2023), our own kernel where the machine has tile products, else ATen's for CPUs. merge() combines the
// partial results of several chunks; partial backwards, given the merged output and log-sum-exp, add up.
//
// b sequences, H query heads, K key-value heads (H a multiple of K: head j reads key-value head j / (H/K)),
// T queries, C keys, d head size. Scores are scaled by 1/√d.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace penstock::nn::kernels {

enum class Mask : std::uint8_t {
  None,    // an earlier chunk: every query sees every key
  Causal,  // the slice's own chunk (C = T): query t sees keys 0..t
};

// The keys of a chunk that each query sees.
struct Visible {
  Visible(Mask kind = Mask::None) : mask(kind) {}  // NOLINT: converts
  Visible(Mask kind, at::Tensor document_starts, std::int64_t first)
      : mask(kind), starts(std::move(document_starts)), first_key(first) {}

  Mask mask;
  // Of each query the position where its document begins, before which it sees nothing (docs/data.md,
  // "Masks"): [b, T] int64, last stride 1, ascending in each row. Undefined: one document.
  at::Tensor starts;
  std::int64_t first_key = 0;  // the position of the chunk's first key
};

enum class AttentionKernel : std::uint8_t {
  Tiled,  // our own: f32 and bf16, where oneDNN has tile products of these or of f32; results in f32
  Aten,   // results in the compute type
};
AttentionKernel fastest_attention(at::ScalarType type);  // of this machine

// Keys that a call should have: earlier chunks are joined until they are so many. 0: each chunk by itself.
std::int64_t keys_at_once(at::ScalarType type, std::int64_t queries);

struct AttentionPart {
  at::Tensor output;       // [b, H, T, d], last stride 1, compute type or its accumulator type
  at::Tensor log_sum_exp;  // [b, H, T] contiguous, accumulator type
};

// query [b, H, T, d] contiguous; key, value [b, K, C, d] with last stride 1. A query that sees no key has the
// output 0 and the log-sum-exp -infinity.
AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible, AttentionKernel kernel);
inline AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const Visible& visible) {
  return attend(query, key, value, visible, fastest_attention(query.scalar_type()));
}

struct AttentionGradients {
  at::Tensor query;  // [b, H, T, d]; all with last stride 1, in the compute type or its accumulator type
  at::Tensor key;    // [b, K, C, d]
  at::Tensor value;
};

// `merged` is the result over all chunks; grad_output [b, H, T, d]. With H > K, contiguous tensors are not
// copied.
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
