// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cuda/launch.h"

#include <cuda_runtime.h>

#include <string>

#include "base/error.h"
#include "nn/kernels/cuda/gpu/stream.h"
#include "nn/kernels/cuda/rows/embedding.h"
#include "nn/kernels/cuda/rows/gate.h"
#include "nn/kernels/cuda/rows/heads.h"
#include "nn/kernels/cuda/rows/loss.h"
#include "nn/kernels/cuda/rows/norm.h"
#include "nn/kernels/cuda/rows/squares.h"
#include "nn/kernels/cuda/rows/sums.h"

namespace penstock::nn::kernels::cuda {
namespace {

void require_success(cudaError_t code) {
  if (code != cudaSuccess) throw RunError(std::string("CUDA: ") + cudaGetErrorString(code));
}

template <class Rows>
__global__ void __launch_bounds__(kBlock) compute(const Rows rows, std::int64_t count) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr int kRows = kBlock / Rows::kLanes;  // per block
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRows + threadIdx.x / Rows::kLanes;
  if (row < count) rows(Lanes<Rows::kLanes>(shared), row);
}

}  // namespace

template <class Rows>
void launch(const Rows& rows, std::int64_t count) {
  using RowLanes = Lanes<Rows::kLanes>;
  constexpr std::int64_t kRows = kBlock / Rows::kLanes;
  constexpr int kUnasked = 48 * 1024;  // bytes of shared memory per block without opt-in
  if (count == 0) return;
  const int shared = RowLanes::kWarps * RowLanes::kReduced + static_cast<int>(rows.scratch_bytes());
  if (shared > kUnasked)
    require_success(cudaFuncSetAttribute(compute<Rows>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const auto blocks = static_cast<unsigned>((count + kRows - 1) / kRows);
  compute<Rows><<<blocks, kBlock, static_cast<std::size_t>(shared), current_stream()>>>(rows, count);
  require_success(cudaGetLastError());
}

#include "nn/kernels/cuda/rows/instances.inc"

}  // namespace penstock::nn::kernels::cuda
