// SPDX-License-Identifier: Apache-2.0
// AVX-512 functions that panel_forward.h and panel_backward.h need in addition to products.
#pragma once

#include "nn/kernels/cpu/attention/avx512_scores.h"
#include "nn/kernels/cpu/attention/avx512_transpose.h"

namespace penstock::nn::kernels::avx512 {

template <class Type, class Power>
struct Vectors {
  using Element = Type;

  static void transpose(const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
                        std::int64_t columns, Element* transposed) {
    if constexpr (kPair<Element> == 1) {
      avx512::transpose(rows, stride, count, width, columns, transposed);
    } else {
      transpose_rows(rows, stride, count, width, columns, transposed);
    }
  }
  static void pack_panel(const Element* rows, std::int64_t stride, std::int64_t count, std::int64_t width,
                         Element* panel) {
    avx512::pack_panel(rows, stride, count, width, panel);
  }
  static bool softmax(const Scores& scores, RunningSoftmax& running, Word* probabilities, float* keep) {
    return avx512::softmax<Element, Power>(scores, running, probabilities, keep);
  }
  static void multiply_rows(float* rows, std::int64_t count, const float* factors) {
    avx512::multiply_rows(rows, count, factors);
  }
  static void write_columns(const float* panel, const float* factors, std::int64_t width, std::int64_t count,
                            float* rows, std::int64_t stride) {
    avx512::write_columns(panel, factors, width, count, rows, stride);
  }
  static void write_scores(const ScoreRows& block) { avx512::write_scores<Element, Power>(block); }
};

}  // namespace penstock::nn::kernels::avx512
