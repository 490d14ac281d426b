// SPDX-License-Identifier: Apache-2.0
#include "backend/copy.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace penstock::backend {

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  C10_CUDA_CHECK(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, c10::cuda::getCurrentCUDAStream().stream()));
}

void synchronize() { c10::cuda::getCurrentCUDAStream().synchronize(); }

}  // namespace penstock::backend
