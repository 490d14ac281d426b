// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx512_attention.h"

#include "nn/kernels/cpu/attention/avx512_vectors.h"
#include "nn/kernels/cpu/attention/panel_backward.h"
#include "nn/kernels/cpu/attention/panel_forward.h"

namespace penstock::nn::kernels::avx512 {
namespace {

template <class Type>
using Power = std::conditional_t<std::is_same_v<Type, float>, ByScaling<Type>, ByIntegers>;

template <class Type>
struct Products : Vectors<Type, Power<Type>> {
  static constexpr std::int64_t kUnit = 8;
  static constexpr std::int64_t kTile = 256, kStep = 128;  // forward: scores take 16 KiB
  static constexpr std::int64_t kRows = 64, kTiles = 1;    // backward

  void add(std::span<const Segment> segments, std::int64_t rows, bool adds, float* to, std::int64_t stride) {
    add_rows<Type>(segments, rows, adds, to, stride);
  }
};

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  if (query.scalar_type() == at::kFloat) return attend_panels<Products<float>>(query, key, value, visible);
  return attend_panels<Products<c10::BFloat16>>(query, key, value, visible);
}

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible) {
  if (query.scalar_type() == at::kFloat)
    return attend_panels_backward<Products<float>>(grad_output, query, key, value, merged, visible);
  return attend_panels_backward<Products<c10::BFloat16>>(grad_output, query, key, value, merged, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  if (probabilities.scalar_type() == at::kFloat)
    return softmax_of_panels<Products<float>>(scores, probabilities);
  softmax_of_panels<Products<c10::BFloat16>>(scores, probabilities);
}

}  // namespace penstock::nn::kernels::avx512
