// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cuda/gpu/stream.h"

#include <c10/cuda/CUDAStream.h>

namespace penstock::nn::kernels::cuda {

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

}  // namespace penstock::nn::kernels::cuda
