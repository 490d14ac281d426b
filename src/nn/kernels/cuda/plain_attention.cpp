// SPDX-License-Identifier: Apache-2.0
// Shapes: queries [b, K, g, t, d], keys [b, K, 1, c, d], scores [b, K, g, t, c]; g query heads share a key
// head.
#include "nn/kernels/cuda/plain_attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::nn::kernels::cuda {
namespace {

constexpr std::int64_t kTile = 512;  // queries

// The queries [begin, begin + count) of a call. They see the keys 0..seen-1; under the causal mask, early
// queries see fewer.
struct Tile {
  std::int64_t begin, count, seen;
  bool causal;

  // [b, H, T, ...] → view [b, K, g, t, ...].
  at::Tensor queries_of(const at::Tensor& x, std::int64_t kv_heads) const {
    return x.unflatten(1, at::IntArrayRef{kv_heads, x.size(1) / kv_heads}).narrow(3, begin, count);
  }
  at::Tensor keys_of(const at::Tensor& x) const { return x.narrow(2, 0, seen).unsqueeze(2); }

  at::Tensor scores(const at::Tensor& query, const at::Tensor& key, double scale) const {
    at::Tensor all = at::matmul(query, key.transpose(-2, -1)).mul_(scale);
    if (causal) {
      const auto positions = key.options().dtype(at::kLong);
      const at::Tensor last = at::arange(begin, begin + count, positions).unsqueeze(1);
      all.masked_fill_(at::arange(0, seen, positions).gt(last), -std::numeric_limits<double>::infinity());
    }
    return all;
  }
};

template <class Work>
void for_tiles(std::int64_t queries, std::int64_t keys, Mask mask, Work&& work) {
  const bool causal = mask == Mask::Causal;
  for (std::int64_t begin = 0; begin < queries; begin += kTile) {
    const std::int64_t count = std::min(kTile, queries - begin);
    work(Tile{begin, count, causal ? begin + count : keys, causal});
  }
}

double scale_of(const at::Tensor& query) { return 1.0 / std::sqrt(static_cast<double>(query.size(3))); }

}  // namespace

AttentionPart plain_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              Mask mask) {
  const std::int64_t kv_heads = key.size(1);
  AttentionPart part{at::empty(query.sizes(), query.options()),
                     at::empty(query.sizes().slice(0, 3), query.options())};
  for_tiles(query.size(2), key.size(2), mask, [&](const Tile& tile) {
    at::Tensor scores = tile.scores(tile.queries_of(query, kv_heads), tile.keys_of(key), scale_of(query));
    const at::Tensor log_sum_exp = at::logsumexp(scores, -1, /*keepdim=*/true);
    scores.sub_(log_sum_exp).exp_();
    tile.queries_of(part.output, kv_heads).copy_(at::matmul(scores, tile.keys_of(value)));
    tile.queries_of(part.log_sum_exp, kv_heads).copy_(log_sum_exp.squeeze(-1));
  });
  return part;
}

AttentionGradients plain_attention_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                            const at::Tensor& key, const at::Tensor& value,
                                            const AttentionPart& merged, Mask mask) {
  const std::int64_t kv_heads = key.size(1);
  const double scale = scale_of(query);
  AttentionGradients grads{at::empty(query.sizes(), query.options()), at::zeros(key.sizes(), key.options()),
                           at::zeros(value.sizes(), value.options())};
  for_tiles(query.size(2), key.size(2), mask, [&](const Tile& tile) {
    const at::Tensor q = tile.queries_of(query, kv_heads), grad = tile.queries_of(grad_output, kv_heads);
    const at::Tensor k = tile.keys_of(key), v = tile.keys_of(value);
    at::Tensor probabilities = tile.scores(q, k, scale);
    probabilities.sub_(tile.queries_of(merged.log_sum_exp, kv_heads).unsqueeze(-1)).exp_();
    const at::Tensor dots = grad.mul(tile.queries_of(merged.output, kv_heads)).sum(-1, /*keepdim=*/true);
    grads.value.narrow(2, 0, tile.seen).add_(at::matmul(probabilities.transpose(-2, -1), grad).sum(2));
    at::Tensor grad_scores = at::matmul(grad, v.transpose(-2, -1));
    grad_scores.sub_(dots).mul_(probabilities).mul_(scale);
    tile.queries_of(grads.query, kv_heads).copy_(at::matmul(grad_scores, k));
    grads.key.narrow(2, 0, tile.seen).add_(at::matmul(grad_scores.transpose(-2, -1), q).sum(2));
  });
  return grads;
}

}  // namespace penstock::nn::kernels::cuda
