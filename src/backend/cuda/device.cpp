// SPDX-License-Identifier: Apache-2.0
#include "backend/device.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace penstock::backend {

c10::Device compute_device() {
  int current = 0;
  if (cudaGetDevice(&current) != cudaSuccess) current = 0;
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(current)};
}

namespace {

// Products sum in f32 and always in the same order, with one workspace per stream; attention's backward is
// deterministic only if required. New memory is not filled.
void set_order(bool repeatable) {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(repeatable, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);
  context.setAllowBF16ReductionCuBLAS(false);
}

}  // namespace

void require_device(bool repeatable) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return set_order(repeatable);
  const std::string reason = code == cudaSuccess ? "none is visible" : cudaGetErrorString(code);
  throw InputError("train.device = \"cuda\": no CUDA device (" + reason + "); use \"cpu\"");
}

std::optional<Gpu> gpu() {
  Gpu gpu;
  if (cudaGetDeviceCount(&gpu.gpus) != cudaSuccess || gpu.gpus == 0) return {};
  std::size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, compute_device().index()));
  gpu.name = properties.name;
  gpu.total = static_cast<Bytes>(total);
  gpu.free = static_cast<Bytes>(free);
  gpu.id.assign(properties.uuid.bytes, sizeof properties.uuid.bytes);
  return gpu;
}

std::optional<Gpu> gpu_of_turn(int turn) {
  int gpus = 0, own = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return {};
  C10_CUDA_CHECK(cudaGetDevice(&own));
  C10_CUDA_CHECK(cudaSetDevice(turn % gpus));
  const std::optional<Gpu> found = gpu();
  C10_CUDA_CHECK(cudaSetDevice(own));
  return found;
}

// Avoids the default stream, which synchronizes with other threads' streams.
void take_turn(int turn) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return;
  const auto mine = static_cast<c10::DeviceIndex>(turn % gpus);
  C10_CUDA_CHECK(cudaSetDevice(mine));
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, mine));
}

}  // namespace penstock::backend
