// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/amx_forward.h"

#include "nn/kernels/cpu/attention/amx.h"
#include "nn/kernels/cpu/attention/panel_forward.h"

namespace penstock::nn::kernels::amx {
namespace {

using Power = avx512::ByScaling;
using Block = QueryBlock<kRows>;
using Seen = avx512::SeenByBlock<kRows>;
using avx512::greatest_of;

constexpr std::int64_t kStep = kKeys;

// One vector of each row, on the way to one number of each.
struct Partial {
  alignas(64) float rows[kRows][kSide];
};

struct Greater {
  PENSTOCK_AVX512_BF16_INLINE __m512 operator()(__m512 a, __m512 b) const { return _mm512_max_ps(a, b); }
};
struct Sum {
  PENSTOCK_AVX512_BF16_INLINE __m512 operator()(__m512 a, __m512 b) const { return _mm512_add_ps(a, b); }
};

// Of 16 rows' vectors, the vector of their results: each round halves the vectors and joins those of two
// rows, so that 16 rows take the steps of three or four.
template <class Operation>
PENSTOCK_AVX512_BF16_INLINE __m512 reduced(const float (*rows)[kSide], Operation operation) {
  __m512 x[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = _mm512_load_ps(rows[i]);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    x[i] = operation(_mm512_shuffle_f32x4(x[i], x[i + 8], 0x44), _mm512_shuffle_f32x4(x[i], x[i + 8], 0xEE));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    x[i] = operation(_mm512_shuffle_f32x4(x[i], x[i + 4], 0x88), _mm512_shuffle_f32x4(x[i], x[i + 4], 0xDD));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    x[i] = operation(_mm512_shuffle_ps(x[i], x[i + 2], 0x44), _mm512_shuffle_ps(x[i], x[i + 2], 0xEE));
  x[0] = operation(_mm512_shuffle_ps(x[0], x[1], 0x88), _mm512_shuffle_ps(x[0], x[1], 0xDD));
  // Quarters hold rows 0, 8, 4 and 12 and the next three of each, in the order 0, 2, 1, 3.
  const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
  return _mm512_permutexvar_ps(order, x[0]);
}

// Scores to probabilities. Leaves in `keep` the factors of what was summed before.
template <bool Masked>
PENSTOCK_AVX512_BF16 void softmax(const Block& block, const Seen& seen, const float* scores,
                                  c10::BFloat16* probabilities, float* keep) {
  avx512::RunningSoftmax<kRows>& running = *block.running;
  Partial partial;
  for (int row = 0; row < kRows; ++row)
    _mm512_store_ps(partial.rows[row], greatest_of<Masked>(scores + row * kStep, seen, row));
  for (int row = 0; row < kRows; row += kSide) {
    const __m512 before = _mm512_load_ps(&running.maximum[row]);
    const __m512 greatest =
        _mm512_mul_ps(_mm512_set1_ps(block.scale), reduced(partial.rows + row, Greater{}));
    const __m512 after = _mm512_max_ps(greatest, before);
    _mm512_store_ps(keep + row, Power::of_two(_mm512_sub_ps(before, after)));
    _mm512_store_ps(&running.maximum[row], after);
  }
  for (int row = 0; row < kRows; ++row) {
    if (Masked && seen.rows[row].none()) keep[row] = 1.0f;  // and its maximum stays
    _mm512_store_ps(partial.rows[row], avx512::exponentiate_row<Power, Masked>(
                                           scores + row * kStep, seen, row, block.scale, running.maximum[row],
                                           probabilities + row * kStep));
  }
  for (int row = 0; row < kRows; row += kSide) {
    const __m512 before = _mm512_load_ps(&running.sum[row]);
    _mm512_store_ps(&running.sum[row],
                    _mm512_fmadd_ps(_mm512_load_ps(keep + row), before, reduced(partial.rows + row, Sum{})));
  }
}

PENSTOCK_AVX512_BF16 void multiply_row(float* row, std::int64_t width, float factor) {
  const __m512 factors = _mm512_set1_ps(factor);
  for (std::int64_t i = 0; i < width; i += kSide)
    _mm512_store_ps(row + i, _mm512_mul_ps(factors, _mm512_load_ps(row + i)));
}

class Products {
 public:
  static constexpr std::int64_t kRows = amx::kRows, kStep = amx::kStep;
  static constexpr std::int64_t kTile =
      256;  // queries that read a step's keys while they are in a near cache

  void add(const Block& block, const Seen& seen) {
    score(block, seen);
    alignas(64) float keep[kRows];
    (seen.masks() ? softmax<true> : softmax<false>)(block, seen, scores_.get(), probabilities_.get(), keep);
    for (std::int64_t row = 0; row < kRows; ++row) {
      if (keep[row] != 1.0f) multiply_row(block.output + row * block.width, block.width, keep[row]);
    }
    sum_values(block, seen);
  }

 private:
  void score(const Block& block, const Seen& seen) {
    const std::int64_t words = block.width / 2;
    for (std::int64_t column = seen.first_column(); column < seen.end_column(); column += kPanel) {
      clear_sums();
      multiply_block(block.query, words, words, block.keys + column * words);
      store_sums(scores_.get() + column, kStep);
    }
  }

  // output += probabilities · values.
  void sum_values(const Block& block, const Seen& seen) {
    const std::int64_t begin = seen.first_column() / 2, steps = seen.end_column() / 2 - begin;
    for (std::int64_t column = 0; column < block.width; column += kPanel) {
      load_sums(block.output + column, block.width);
      multiply_block(avx512::words(probabilities_.get()) + begin, kStep / 2, steps,
                     block.values + column * block.value_steps + begin * kPanel);
      store_sums(block.output + column, block.width);
    }
  }

  Tiles tiles_;
  Scratch<float> scores_ = scratch<float>(kRows * kStep);
  Scratch<c10::BFloat16> probabilities_ = scratch<c10::BFloat16>(kRows * kStep);
};

PENSTOCK_AVX512_BF16 void softmax_row(const float* scores, const avx512::SeenByBlock<1>& seen,
                                      c10::BFloat16* probabilities) {
  constexpr auto kScale = static_cast<float>(kLogOfE);
  const float maximum = kScale * _mm512_reduce_max_ps(greatest_of<false>(scores, seen, 0));
  avx512::exponentiate_row<Power, false>(scores, seen, 0, kScale, maximum, probabilities);
}

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  return attend_panels<Products>(query, key, value, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  const avx512::SeenByBlock<1> seen{.rows = {{{0, kKeys}}}, .any = {0, kKeys}};
  for (std::int64_t i = 0; i < scores.numel(); i += kKeys)
    softmax_row(scores.const_data_ptr<float>() + i, seen, probabilities.data_ptr<c10::BFloat16>() + i);
}

}  // namespace penstock::nn::kernels::amx
