// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/merge.h"

namespace penstock::nn::kernels {

AttentionPart no_attention(at::IntArrayRef sizes, const at::Tensor& like) {
  const auto options = like.options().dtype(accumulator_type(like.scalar_type()));
  return {at::zeros(sizes, options),
          at::full(sizes.slice(0, 3), -std::numeric_limits<double>::infinity(), options)};
}

}  // namespace penstock::nn::kernels
