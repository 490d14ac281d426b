// SPDX-License-Identifier: Apache-2.0
#include "backend/device.h"

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace penstock::backend {

c10::Device compute_device() {
  int current = 0;
  if (cudaGetDevice(&current) != cudaSuccess) current = 0;
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(current)};
}

void require_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return;
  const std::string reason = code == cudaSuccess ? "none is visible" : cudaGetErrorString(code);
  throw InputError("train.device = \"cuda\": no CUDA device (" + reason + "); use \"cpu\"");
}

}  // namespace penstock::backend
