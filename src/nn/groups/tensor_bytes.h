// SPDX-License-Identifier: Apache-2.0
// A tensor's memory as bytes, for the communicator and files.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "base/error.h"

namespace penstock::nn {

// The tensor must be contiguous, in the host's memory, and outlive the span.
inline std::span<std::byte> bytes_of_tensor(const at::Tensor& tensor) {
  PENSTOCK_CHECK(tensor.device().is_cpu(), "the communicator and files read the host's memory");
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

}  // namespace penstock::nn
