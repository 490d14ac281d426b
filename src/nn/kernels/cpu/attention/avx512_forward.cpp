// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx512_forward.h"

#include "nn/kernels/cpu/attention/panel_forward.h"

namespace penstock::nn::kernels::avx512 {
namespace {

PENSTOCK_AVX512_BF16_INLINE void score_block(const QueryBlock& block, const SeenByBlock& seen,
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
      float* scores = block.scores + row * kKeys + column;
      _mm512_storeu_ps(scores, sums[row][0]);
      _mm512_storeu_ps(scores + 16, sums[row][1]);
      raise(greatest[row], sums[row], seen, row, column);
    }
  }
}

// output = keep·output + probabilities · values.
PENSTOCK_AVX512_BF16_INLINE void sum_values(const QueryBlock& block, const SeenByBlock& seen,
                                            const float (&keep)[kBlock]) {
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
    multiply_block(words(block.probabilities) + begin, kKeys / 2, steps, values, sums);
#pragma GCC unroll 16
    for (int row = 0; row < kBlock; ++row) {
      float* output = block.output + row * block.width + column;
      _mm512_storeu_ps(output, sums[row][0]);
      _mm512_storeu_ps(output + 16, sums[row][1]);
    }
  }
}

PENSTOCK_AVX512_BF16 void attend_block(const QueryBlock& block, const SeenByBlock& seen, float scale,
                                       RunningSoftmax& running) {
  __m512 greatest[kBlock];
  score_block(block, seen, greatest);
  float keep[kBlock];
  softmax_block<ByIntegers>(block.scores, seen, scale, greatest, running, block.probabilities, keep);
  sum_values(block, seen, keep);
}

PENSTOCK_AVX512_BF16 void softmax_alone(const float* scores, const SeenByBlock& seen,
                                        c10::BFloat16* probabilities) {
  __m512 greatest[kBlock];
  find_greatest(scores, seen, greatest);
  RunningSoftmax running{};
  float keep[kBlock];
  softmax_block<ByIntegers>(scores, seen, static_cast<float>(kLogOfE), greatest, running, probabilities,
                            keep);
}

struct Products {
  static constexpr std::int64_t kRows = kBlock;
  static void attend(const QueryBlock& block, const std::array<SeenByBlock, 1>& seen, float scale,
                     RunningSoftmax* running) {
    attend_block(block, seen[0], scale, *running);
  }
};

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  return attend_panels<Products>(query, key, value, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  for (std::int64_t i = 0; i < scores.numel(); i += kBlock * kKeys)
    softmax_alone(scores.const_data_ptr<float>() + i, whole_tile(),
                  probabilities.data_ptr<c10::BFloat16>() + i);
}

}  // namespace penstock::nn::kernels::avx512
