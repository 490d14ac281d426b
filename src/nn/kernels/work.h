// SPDX-License-Identifier: Apache-2.0
// Work of a kernel call, for the profile.
#pragma once

#include <ATen/core/Tensor.h>

#include "nn/kernels/profile.h"

namespace penstock::nn::kernels {

// Product of [rows, inner] and [inner, columns].
inline KernelTimer::Work product_work(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  return {.flops =
              2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns)};
}

// Work that reads or writes each tensor once. Undefined tensors count as 0 bytes.
template <class... Tensors>
KernelTimer::Work memory_work(const Tensors&... tensors) {
  const auto bytes = [](const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<double>(tensor.nbytes()) : 0.0;
  };
  return {.bytes = (bytes(tensors) + ...)};
}

}  // namespace penstock::nn::kernels
