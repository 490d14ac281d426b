// SPDX-License-Identifier: Apache-2.0
// Adds tensors to sums in the accumulator type.
#pragma once

#include <ATen/core/Tensor.h>

#include "nn/kernels/element_dispatch.h"

namespace penstock::nn::kernels {

// Converts x to the accumulator type of its type. Returns x itself if that is already its type.
inline at::Tensor in_accumulator_type(const at::Tensor& x) { return x.to(accumulator_type(x.scalar_type())); }

// sum += part. Both have the same shape, up to four dimensions and last stride 1; sum has the accumulator
// type of part's type.
void accumulate(at::Tensor& sum, const at::Tensor& part);

// The same, but an undefined sum takes over the part, which must not be used afterwards.
inline void accumulate_or_take(at::Tensor& sum, const at::Tensor& part) {
  if (sum.defined()) {
    accumulate(sum, part);
  } else {
    sum = in_accumulator_type(part);
  }
}

}  // namespace penstock::nn::kernels
