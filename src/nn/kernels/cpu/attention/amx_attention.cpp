// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/amx_attention.h"

#include "nn/kernels/cpu/attention/amx.h"
#include "nn/kernels/cpu/attention/avx512_vectors.h"
#include "nn/kernels/cpu/attention/panel_backward.h"
#include "nn/kernels/cpu/attention/panel_forward.h"

namespace penstock::nn::kernels::amx {
namespace {

class Products : public avx512::Vectors<c10::BFloat16, avx512::ByScaling<c10::BFloat16>> {
 public:
  static constexpr std::int64_t kUnit = amx::kRows;
  static constexpr std::int64_t kTile = 256, kStep = kKeys;      // forward
  static constexpr std::int64_t kRows = amx::kRows, kTiles = 4;  // backward

  void add(std::span<const Segment> segments, std::int64_t rows, bool adds, float* to, std::int64_t stride) {
    for (std::int64_t row = 0; row < rows; row += amx::kRows) {
      float* sums = to + row * stride;
      adds ? load_sums(sums, stride) : clear_sums();
      for (const auto& [left, panel, steps] : segments)
        multiply_block(left.at + row * left.row, left.row, steps, panel);
      store_sums(sums, stride);
    }
  }

 private:
  Tiles tiles_;
};

}  // namespace

AttentionPart attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Visible& visible) {
  return attend_panels<Products>(query, key, value, visible);
}

AttentionGradients attend_backward(const at::Tensor& grad_output, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value,
                                   const AttentionPart& merged, const Visible& visible) {
  return attend_panels_backward<Products>(grad_output, query, key, value, merged, visible);
}

void softmax_tile(const at::Tensor& scores, at::Tensor& probabilities) {
  softmax_of_panels<Products>(scores, probabilities);
}

}  // namespace penstock::nn::kernels::amx
