// SPDX-License-Identifier: Apache-2.0
// The running softmax of a block of queries over the keys of one step.
#pragma once

#include <algorithm>
#include <array>

#include "nn/kernels/cpu/attention/avx512.h"
#include "nn/kernels/cpu/attention/tiles.h"

namespace penstock::nn::kernels::avx512 {

// What the queries of a block see of the keys of one step.
template <std::int64_t Rows>
struct SeenByBlock {
  std::array<Range, Rows> rows;
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
  // Whether a panel has columns that some query does not see; whether one of its panels has.
  bool masks(std::int64_t column) const { return column < all.from || column + kPanel > all.until; }
  bool masks() const { return first_column() < all.from || end_column() > all.until; }
};

// Of 16 columns from `column` on, those that are seen.
inline std::uint16_t seen_mask(const Range& seen, std::int64_t column) {
  const auto below = [&](std::int64_t end) {
    return (1u << std::clamp<std::int64_t>(end - column, 0, 16)) - 1u;
  };
  return static_cast<std::uint16_t>(below(seen.until) & ~below(seen.from));
}

// `maximum` is of scores as powers of two.
template <std::int64_t Rows>
struct RunningSoftmax {
  alignas(64) std::array<float, Rows> maximum, sum;

  void begin() {
    maximum.fill(-INFINITY);
    sum.fill(0.0f);
  }
};

// greatest = the greater of it and of one panel's scores that the row sees. What is not a number does not
// count.
template <std::int64_t Rows>
PENSTOCK_AVX512_BF16_INLINE void raise(__m512& greatest, const __m512 (&scores)[2],
                                       const SeenByBlock<Rows>& block, int row, std::int64_t column) {
  if (!block.masks(column)) {
    greatest = _mm512_max_ps(scores[1], _mm512_max_ps(scores[0], greatest));
    return;
  }
  const Range& seen = block.rows[static_cast<std::size_t>(row)];
  greatest = _mm512_mask_max_ps(greatest, seen_mask(seen, column), scores[0], greatest);
  greatest = _mm512_mask_max_ps(greatest, seen_mask(seen, column + 16), scores[1], greatest);
}

// The same of a row's stored scores. Masked: some panel masks some query.
template <bool Masked, std::int64_t Rows>
PENSTOCK_AVX512_BF16_INLINE __m512 greatest_of(const float* scores, const SeenByBlock<Rows>& block, int row) {
  const std::int64_t begin = block.first_column(), end = block.end_column();
  __m512 greatest[2] = {_mm512_set1_ps(-INFINITY), _mm512_set1_ps(-INFINITY)};
  for (std::int64_t column = begin; column < end; column += kPanel) {
    const __m512 panel[2] = {_mm512_loadu_ps(scores + column), _mm512_loadu_ps(scores + column + 16)};
    if constexpr (Masked) {
      raise(greatest[0], panel, block, row, column);
    } else {
      greatest[0] = _mm512_max_ps(panel[0], greatest[0]);
      greatest[1] = _mm512_max_ps(panel[1], greatest[1]);
    }
  }
  return _mm512_max_ps(greatest[0], greatest[1]);
}

// probabilities = 2^(scale·score − maximum) of whole panels, 0 where the row does not see; returns the
// parts of their sum.
template <class Power, bool Masked, std::int64_t Rows>
PENSTOCK_AVX512_BF16_INLINE __m512 exponentiate_row(const float* scores, const SeenByBlock<Rows>& block,
                                                    int row, float scale, float maximum,
                                                    c10::BFloat16* probabilities) {
  const Range& seen = block.rows[static_cast<std::size_t>(row)];
  const __m512 scales = _mm512_set1_ps(scale), maxima = _mm512_set1_ps(maximum);
  __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  const std::int64_t begin = block.first_column(), end = block.end_column();
  for (std::int64_t column = begin; column < end; column += kPanel) {
    __m512 first = Power::of_two(_mm512_fmsub_ps(scales, _mm512_loadu_ps(scores + column), maxima));
    __m512 second = Power::of_two(_mm512_fmsub_ps(scales, _mm512_loadu_ps(scores + column + 16), maxima));
    if (Masked && block.masks(column)) {
      first = _mm512_maskz_mov_ps(seen_mask(seen, column), first);
      second = _mm512_maskz_mov_ps(seen_mask(seen, column + 16), second);
    }
    sums[0] = _mm512_add_ps(sums[0], first);
    sums[1] = _mm512_add_ps(sums[1], second);
    _mm512_storeu_si512(probabilities + column, narrowed_pair(first, second));
  }
  return _mm512_add_ps(sums[0], sums[1]);
}

}  // namespace penstock::nn::kernels::avx512
