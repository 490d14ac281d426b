// SPDX-License-Identifier: Apache-2.0
// A tensor's memory as bytes, for the communicator and files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace penstock::nn {

// The tensor must be contiguous and outlive the span.
inline std::span<std::byte> bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

}  // namespace penstock::nn
