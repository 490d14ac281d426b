// SPDX-License-Identifier: Apache-2.0
// A tensor's memory as bytes, for the communicator and files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "base/error.h"

namespace penstock::nn {

// For the communicator: device or host memory. The tensor must be contiguous and outlive the span.
inline std::span<std::byte> bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

// For files.
inline std::span<std::byte> host_bytes_of_tensor(const at::Tensor& tensor) {
  PENSTOCK_CHECK(tensor.device().is_cpu(), "files read the host's memory");
  return bytes_of_tensor(tensor);
}

}  // namespace penstock::nn
