// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/amx_forward.h"

#include "nn/kernels/cpu/attention/amx.h"
#include "nn/kernels/cpu/attention/panel_forward.h"

namespace penstock::nn::kernels::amx {
namespace {

using avx512::ByScaling;
using avx512::kBlock;
using avx512::RunningSoftmax;
using avx512::SeenByBlock;

constexpr std::int64_t kGroups = kRows / kBlock;
using Seen = std::array<SeenByBlock, kGroups>;

// Columns of the whole panels that some query sees.
struct Columns {
  std::int64_t first = kKeys, end = 0;

  explicit Columns(const Seen& seen) {
    for (const SeenByBlock& group : seen) {
      if (group.any.none()) continue;
      first = std::min(first, group.first_column());
      end = std::max(end, group.end_column());
    }
  }
};

// Probabilities [8, kKeys] of the columns, and the factors of what was summed before.
PENSTOCK_AVX512_BF16 void softmax(const float* scores, const SeenByBlock& seen, const Columns& columns,
                                  float scale, RunningSoftmax& running, c10::BFloat16* probabilities,
                                  float (&keep)[kBlock]) {
  __m512 greatest[kBlock];
  find_greatest(scores, seen, greatest);
  softmax_block<ByScaling>(scores, seen, scale, greatest, running, probabilities, keep);
  const bool none = seen.any.none();
  const std::int64_t first = none ? columns.end : seen.first_column(),
                     end = none ? columns.end : seen.end_column();
  if (first == columns.first && end == columns.end) return;
  for (std::int64_t row = 0; row < kBlock; ++row) {
    std::fill_n(probabilities + row * kKeys + columns.first, first - columns.first, c10::BFloat16(0));
    std::fill_n(probabilities + row * kKeys + end, columns.end - end, c10::BFloat16(0));
  }
}

PENSTOCK_AVX512_BF16 void multiply_row(float* row, std::int64_t width, float factor) {
  const __m512 factors = _mm512_set1_ps(factor);
  for (std::int64_t i = 0; i < width; i += 16)
    _mm512_storeu_ps(row + i, _mm512_mul_ps(factors, _mm512_loadu_ps(row + i)));
}

void score_block(const QueryBlock& block, const Columns& columns) {
  const std::int64_t query_words = block.width / 2;
  for (std::int64_t column = columns.first; column < columns.end; column += kPanel) {
    clear_sums();
    multiply_block(block.query, query_words, query_words, block.keys + column * query_words);
    store_sums(block.scores + column, kKeys);
  }
}

// output += probabilities · values.
void sum_values(const QueryBlock& block, const Columns& columns) {
  const std::int64_t begin = columns.first / 2, steps = (columns.end - columns.first) / 2;
  for (std::int64_t column = 0; column < block.width; column += kPanel) {
    load_sums(block.output + column, block.width);
    multiply_block(avx512::words(block.probabilities) + begin, kKeys / 2, steps,
                   block.values + column * block.value_steps + begin * kPanel);
    store_sums(block.output + column, block.width);
  }
}

struct Products {
  static constexpr std::int64_t kRows = amx::kRows;

  static void attend(const QueryBlock& block, const Seen& seen, float scale, RunningSoftmax* running) {
    const Columns columns(seen);
    score_block(block, columns);
    for (std::int64_t group = 0; group < kGroups; ++group) {
      const std::int64_t first = group * kBlock;
      float keep[kBlock];
      softmax(block.scores + first * kKeys, seen[group], columns, scale, running[group],
              block.probabilities + first * kKeys, keep);
      for (std::int64_t row = 0; row < kBlock; ++row) {
        if (keep[row] != 1.0f)
          multiply_row(block.output + (first + row) * block.width, block.width, keep[row]);
      }
    }
    sum_values(block, columns);
  }

 private:
  Tiles tiles_;
};

PENSTOCK_AVX512_BF16 void softmax_alone(const float* scores, c10::BFloat16* probabilities) {
  __m512 greatest[kBlock];
  find_greatest(scores, avx512::whole_tile(), greatest);
  RunningSoftmax running{};
  float keep[kBlock];
  softmax_block<ByScaling>(scores, avx512::whole_tile(), static_cast<float>(kLogOfE), greatest, running,
                           probabilities, keep);
}

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  return attend_panels<Products>(query, key, value, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  for (std::int64_t i = 0; i < scores.numel(); i += kBlock * kKeys)
    softmax_alone(scores.const_data_ptr<float>() + i, probabilities.data_ptr<c10::BFloat16>() + i);
}

}  // namespace penstock::nn::kernels::amx
