// SPDX-License-Identifier: Apache-2.0
// LibTorch's current stream, for files that do without its headers.
#pragma once

#include <cuda_runtime_api.h>

namespace penstock::nn::kernels::cuda {

cudaStream_t current_stream();

}  // namespace penstock::nn::kernels::cuda
