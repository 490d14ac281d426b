// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/by_document.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/first_keys.h"
#include "nn/kernels/merge.h"

namespace penstock::nn::kernels {
namespace {

// Queries [begin, end) of a sequence; they see the keys from `first` on.
struct Piece {
  std::int64_t sequence, begin, end, first;

  at::Tensor queries_of(const at::Tensor& x) const {
    return x.narrow(0, sequence, 1).narrow(2, begin, end - begin);
  }
  at::Tensor keys_of(const at::Tensor& x, Mask mask) const {
    const std::int64_t count = (mask == Mask::Causal ? end : x.size(2)) - first;
    return x.narrow(0, sequence, 1).narrow(2, first, count);
  }
};

// Calls work(piece) in order. Skips pieces that see no key.
template <class Work>
void for_pieces(const at::Tensor& query, const at::Tensor& key, const Visible& visible, Work&& work) {
  const FirstKeys first_keys(visible);
  const std::int64_t tokens = query.size(2);
  for (std::int64_t sequence = 0; sequence < query.size(0); ++sequence) {
    for (std::int64_t begin = 0, end = 0; begin < tokens; begin = end) {
      const std::int64_t document = first_keys.of(sequence, begin),
                         first = std::max<std::int64_t>(document, 0);
      while (end < tokens && first_keys.of(sequence, end) == document) ++end;
      PENSTOCK_CHECK(visible.mask == Mask::None || first == begin, "a document begins with its first token");
      if (first < key.size(2)) work(Piece{sequence, begin, end, first});
    }
  }
}

at::Tensor sums_like(const at::Tensor& x) {
  return at::zeros(x.sizes(), x.options().dtype(accumulator_type(x.scalar_type())));
}

}  // namespace

AttentionPart attend_by_document(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                 const Visible& visible, AttentionKernel kernel) {
  AttentionPart all = no_attention(query.sizes(), query);
  for_pieces(query, key, visible, [&](const Piece& piece) {
    const AttentionPart part = attend(piece.queries_of(query).contiguous(), piece.keys_of(key, visible.mask),
                                      piece.keys_of(value, visible.mask), visible.mask, kernel);
    piece.queries_of(all.output).copy_(part.output);
    piece.queries_of(all.log_sum_exp).copy_(part.log_sum_exp);
  });
  return all;
}

AttentionGradients attend_by_document_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                               const at::Tensor& key, const at::Tensor& value,
                                               const AttentionPart& merged, const Visible& visible,
                                               AttentionKernel kernel) {
  AttentionGradients all{sums_like(query), sums_like(key), sums_like(value)};
  for_pieces(query, key, visible, [&](const Piece& piece) {
    const AttentionPart of_piece{piece.queries_of(merged.output).contiguous(),
                                 piece.queries_of(merged.log_sum_exp).contiguous()};
    const AttentionGradients gradients = attend_backward(
        piece.queries_of(grad_output).contiguous(), piece.queries_of(query).contiguous(),
        piece.keys_of(key, visible.mask), piece.keys_of(value, visible.mask), of_piece, visible.mask, kernel);
    piece.queries_of(all.query).copy_(gradients.query);
    at::Tensor keys = piece.keys_of(all.key, visible.mask), values = piece.keys_of(all.value, visible.mask);
    accumulate(keys, gradients.key);
    accumulate(values, gradients.value);
  });
  return all;
}

}  // namespace penstock::nn::kernels
