// SPDX-License-Identifier: Apache-2.0
// LibTorch's current stream, for files that do not include LibTorch's headers.
#pragma once

#include <cuda_runtime_api.h>

namespace penstock::nn::kernels::cuda {

cudaStream_t current_stream();

}  // namespace penstock::nn::kernels::cuda
