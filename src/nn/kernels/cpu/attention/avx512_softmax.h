// SPDX-License-Identifier: Apache-2.0
// The softmax of eight queries over one tile of keys.
#pragma once

#include <algorithm>
#include <array>

#include "nn/kernels/cpu/attention/avx512.h"
#include "nn/kernels/cpu/attention/tiles.h"

namespace penstock::nn::kernels::avx512 {

// What eight queries see of a tile of keys.
struct SeenByBlock {
  std::array<Range, kBlock> rows;
  Range any{kKeys, 0}, all{0, kKeys};  // keys between the first and the last that one sees; that each sees

  void finish() {
    for (const Range& row : rows) {
      if (!row.none()) any = {std::min(any.from, row.from), std::max(any.until, row.until)};
      all = {std::max(all.from, row.from), std::min(all.until, row.until)};
    }
  }
  // Columns of whole panels.
  std::int64_t first_column() const { return any.from / kPanel * kPanel; }
  std::int64_t end_column() const { return up(any.until, kPanel); }
  // Whether a panel has columns that some query does not see.
  bool masks(std::int64_t column) const { return column < all.from || column + kPanel > all.until; }
};

// Eight queries that see all keys of a tile.
inline const SeenByBlock& whole_tile() {
  static const SeenByBlock seen = [] {
    SeenByBlock all;
    all.rows.fill({0, kKeys});
    all.finish();
    return all;
  }();
  return seen;
}

// Of 16 columns from `column` on, those that are seen.
inline std::uint16_t seen_mask(const Range& seen, std::int64_t column) {
  const auto below = [&](std::int64_t end) {
    return (1u << std::clamp<std::int64_t>(end - column, 0, 16)) - 1u;
  };
  return static_cast<std::uint16_t>(below(seen.until) & ~below(seen.from));
}

// The running softmax of eight queries. `maximum` is of scores as powers of two.
struct RunningSoftmax {
  std::array<float, kBlock> maximum, sum;
};

// greatest = the greater of it and of one panel's scores that the row sees. What is not a number does not
// count.
PENSTOCK_AVX512_BF16_INLINE void raise(__m512& greatest, const __m512 (&scores)[2], const SeenByBlock& block,
                                       int row, std::int64_t column) {
  if (!block.masks(column)) {
    greatest = _mm512_max_ps(scores[1], _mm512_max_ps(scores[0], greatest));
    return;
  }
  const Range& seen = block.rows[static_cast<std::size_t>(row)];
  greatest = _mm512_mask_max_ps(greatest, seen_mask(seen, column), scores[0], greatest);
  greatest = _mm512_mask_max_ps(greatest, seen_mask(seen, column + 16), scores[1], greatest);
}

// The same of scores [8, kKeys] that are stored.
PENSTOCK_AVX512_BF16_INLINE void find_greatest(const float* scores, const SeenByBlock& block,
                                               __m512 (&greatest)[kBlock]) {
  for (int row = 0; row < kBlock; ++row) {
    __m512 of_row = _mm512_set1_ps(-INFINITY);
    for (std::int64_t column = block.first_column(); column < block.end_column(); column += kPanel) {
      const float* at = scores + row * kKeys + column;
      const __m512 panel[2] = {_mm512_loadu_ps(at), _mm512_loadu_ps(at + 16)};
      raise(of_row, panel, block, row, column);
    }
    greatest[row] = of_row;
  }
}

// probabilities = 2^(scale·score − maximum) of whole panels, 0 where the row does not see; returns their sum.
template <class Power>
PENSTOCK_AVX512_BF16_INLINE float exponentiate_row(const float* scores, const SeenByBlock& block, int row,
                                                   float scale, float maximum, c10::BFloat16* probabilities) {
  const Range& seen = block.rows[static_cast<std::size_t>(row)];
  const __m512 scales = _mm512_set1_ps(scale), maxima = _mm512_set1_ps(maximum);
  __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (std::int64_t column = block.first_column(); column < block.end_column(); column += kPanel) {
    __m512 first = Power::of_two(_mm512_fmsub_ps(scales, _mm512_loadu_ps(scores + column), maxima));
    __m512 second = Power::of_two(_mm512_fmsub_ps(scales, _mm512_loadu_ps(scores + column + 16), maxima));
    if (block.masks(column)) {
      first = _mm512_maskz_mov_ps(seen_mask(seen, column), first);
      second = _mm512_maskz_mov_ps(seen_mask(seen, column + 16), second);
    }
    sums[0] = _mm512_add_ps(sums[0], first);
    sums[1] = _mm512_add_ps(sums[1], second);
    _mm512_storeu_si512(probabilities + column, narrowed_pair(first, second));
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
}

// Scores [8, kKeys] to probabilities [8, kKeys]; `greatest` of each row are the maxima of its scores. Returns
// the factors of what was summed before.
template <class Power>
PENSTOCK_AVX512_BF16_INLINE void softmax_block(const float* scores, const SeenByBlock& block, float scale,
                                               const __m512 (&greatest)[kBlock], RunningSoftmax& running,
                                               c10::BFloat16* probabilities, float (&keep)[kBlock]) {
  float maxima[kBlock];
  for (int row = 0; row < kBlock; ++row)
    maxima[row] = std::max(running.maximum[row], scale * _mm512_reduce_max_ps(greatest[row]));
  const __m256 before = _mm256_loadu_ps(running.maximum.data());
  const __m512 change = _mm512_castps256_ps512(_mm256_sub_ps(before, _mm256_loadu_ps(maxima)));
  _mm256_storeu_ps(keep, _mm512_castps512_ps256(Power::of_two(change)));
  for (int row = 0; row < kBlock; ++row) {
    if (block.rows[row].none()) keep[row] = 1.0f;  // and its maximum stays
    const float sum = exponentiate_row<Power>(scores + row * kKeys, block, row, scale, maxima[row],
                                              probabilities + row * kKeys);
    running.sum[row] = keep[row] * running.sum[row] + sum;
    running.maximum[row] = maxima[row];
  }
}

}  // namespace penstock::nn::kernels::avx512
