// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx512_forward.h"

#include "nn/kernels/cpu/attention/panel_forward.h"

namespace penstock::nn::kernels::avx512 {
namespace {

using Seen = SeenByBlock<kBlock>;
using Running = RunningSoftmax<kBlock>;

PENSTOCK_AVX512_BF16_INLINE void score_block(const QueryBlock<kBlock>& block, const Seen& seen, float* to,
                                             __m512 (&greatest)[kBlock]) {
  const std::int64_t query_words = block.width / 2;
#pragma GCC unroll 16
  for (int row = 0; row < kBlock; ++row) greatest[row] = _mm512_set1_ps(-INFINITY);
  for (std::int64_t column = seen.first_column(); column < seen.end_column(); column += kPanel) {
    __m512 sums[kBlock][2];
    clear(sums);
    multiply_block(block.query, query_words, query_words, block.keys + column * query_words, sums);
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      float* scores = to + row * kKeys + column;
      _mm512_storeu_ps(scores, sums[row][0]);
      _mm512_storeu_ps(scores + 16, sums[row][1]);
      raise(greatest[row], sums[row], seen, row, column);
    }
  }
}

// Scores to probabilities; `greatest` of each row are the maxima of its scores. Returns the factors of what
// was summed before.
template <bool Masked>
PENSTOCK_AVX512_BF16_INLINE void softmax_block(const float* scores, c10::BFloat16* probabilities,
                                               const Seen& seen, float scale,
                                               const __m512 (&greatest)[kBlock], Running& running,
                                               float (&keep)[kBlock]) {
  float maxima[kBlock];
  for (int row = 0; row < kBlock; ++row)
    maxima[row] = std::max(running.maximum[row], scale * _mm512_reduce_max_ps(greatest[row]));
  const __m256 before = _mm256_loadu_ps(running.maximum.data());
  const __m512 change = _mm512_castps256_ps512(_mm256_sub_ps(before, _mm256_loadu_ps(maxima)));
  _mm256_storeu_ps(keep, _mm512_castps512_ps256(ByIntegers::of_two(change)));
  for (int row = 0; row < kBlock; ++row) {
    if (seen.rows[row].none()) keep[row] = 1.0f;  // and its maximum stays
    const __m512 sum = exponentiate_row<ByIntegers, Masked>(scores + row * kKeys, seen, row, scale,
                                                            maxima[row], probabilities + row * kKeys);
    running.sum[row] = keep[row] * running.sum[row] + _mm512_reduce_add_ps(sum);
    running.maximum[row] = maxima[row];
  }
}

// output = keep·output + probabilities · values.
PENSTOCK_AVX512_BF16_INLINE void sum_values(const QueryBlock<kBlock>& block, const Seen& seen,
                                            const c10::BFloat16* probabilities, const float (&keep)[kBlock]) {
  const std::int64_t begin = seen.first_column() / 2, steps = (seen.any.until + 1) / 2 - begin;
  for (std::int64_t column = 0; column < block.width; column += kPanel) {
    __m512 sums[kBlock][2];
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      const __m512 factor = _mm512_set1_ps(keep[row]);
      const float* output = block.output + row * block.width + column;
      sums[row][0] = _mm512_mul_ps(factor, _mm512_loadu_ps(output));
      sums[row][1] = _mm512_mul_ps(factor, _mm512_loadu_ps(output + 16));
    }
    const Word* values = block.values + column * block.value_steps + begin * kPanel;
    multiply_block(words(probabilities) + begin, kKeys / 2, steps, values, sums);
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      float* output = block.output + row * block.width + column;
      _mm512_storeu_ps(output, sums[row][0]);
      _mm512_storeu_ps(output + 16, sums[row][1]);
    }
  }
}

// scores, probabilities: room for [8, kKeys].
PENSTOCK_AVX512_BF16 void attend_block(const QueryBlock<kBlock>& block, const Seen& seen, float* scores,
                                       c10::BFloat16* probabilities) {
  __m512 greatest[kBlock];
  score_block(block, seen, scores, greatest);
  float keep[kBlock];
  if (seen.masks()) {
    softmax_block<true>(scores, probabilities, seen, block.scale, greatest, *block.running, keep);
  } else {
    softmax_block<false>(scores, probabilities, seen, block.scale, greatest, *block.running, keep);
  }
  sum_values(block, seen, probabilities, keep);
}

PENSTOCK_AVX512_BF16 void softmax_alone(const float* scores, c10::BFloat16* probabilities, const Seen& seen) {
  __m512 greatest[kBlock];
  for (int row = 0; row < kBlock; ++row) greatest[row] = greatest_of<false>(scores + row * kKeys, seen, row);
  Running running{};
  float keep[kBlock];
  softmax_block<false>(scores, probabilities, seen, static_cast<float>(kLogOfE), greatest, running, keep);
}

class Products {
 public:
  static constexpr std::int64_t kRows = kBlock, kStep = kKeys, kTile = kQueries;

  void add(const QueryBlock<kBlock>& block, const Seen& seen) {
    attend_block(block, seen, scores_.get(), probabilities_.get());
  }

 private:
  Scratch<c10::BFloat16> probabilities_ = scratch<c10::BFloat16>(kRows * kStep);
  Scratch<float> scores_ = scratch<float>(kRows * kStep);
};

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  return attend_panels<Products>(query, key, value, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  Seen seen;
  seen.rows.fill({0, kKeys});
  seen.finish();
  for (std::int64_t i = 0; i < scores.numel(); i += kBlock * kKeys)
    softmax_alone(scores.const_data_ptr<float>() + i, probabilities.data_ptr<c10::BFloat16>() + i, seen);
}

}  // namespace penstock::nn::kernels::avx512
