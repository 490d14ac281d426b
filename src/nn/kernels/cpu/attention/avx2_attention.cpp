// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx2_attention.h"

#include "nn/kernels/cpu/attention/avx2_softmax.h"
#include "nn/kernels/cpu/attention/panel_forward.h"

namespace penstock::nn::kernels::avx2 {
namespace {

struct Products {
  using Element = float;
  static constexpr std::int64_t kUnit = 8;
  static constexpr std::int64_t kTile = 256, kStep = 128;  // scores take 16 KiB

  void add(std::span<const Segment> segments, std::int64_t rows, bool adds, float* to, std::int64_t stride) {
    add_rows(segments, rows, adds, to, stride);
  }
  static void transpose(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
                        std::int64_t columns, float* transposed) {
    transpose_rows(rows, stride, count, width, columns, transposed);
  }
  static void pack_panel(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
                         float* panel) {
    transpose_rows(rows, stride, count, width, kPanel, panel);
  }
  static bool softmax(const Scores& scores, RunningSoftmax& running, float* probabilities, float* keep) {
    return avx2::softmax(scores, running, probabilities, keep);
  }
  static void multiply_rows(float* rows, std::int64_t count, const float* factors) {
    avx2::multiply_rows(rows, count, factors);
  }
  // Also leaves the panel multiplied by the factors.
  static void write_columns(float* panel, const float* factors, std::int64_t width, std::int64_t count,
                            float* rows, std::int64_t stride) {
    avx2::multiply_rows(panel, width, factors);
    const std::int64_t whole = count / 4 * 4;
    for (std::int64_t row = 0; row < whole; row += 4) {
      for (std::int64_t at = 0; at < width; at += 4)
        transpose_words(panel + at * kPanel + row, kPanel, rows + row * stride + at, stride);
    }
    for (std::int64_t row = whole; row < count; ++row) {
      for (std::int64_t at = 0; at < width; ++at) rows[row * stride + at] = panel[at * kPanel + row];
    }
  }
};

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  return attend_panels<Products>(query, key, value, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  softmax_of_panels<Products>(scores, probabilities);
}

}  // namespace penstock::nn::kernels::avx2
