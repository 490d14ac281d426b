// SPDX-License-Identifier: Apache-2.0
// How mpirun ranks that compute on GPUs exchange data in GPU memory.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace penstock::cli {

// Number of ranks that compute on this rank's GPU; 0 on the CPU or without a GPU. Collective.
int ranks_on_gpu(comm::Communicator& world);

// Returns a communicator over NCCL, if the library is found and every rank has its own GPU or
// NCCL_MULTI_RANK_GPU_ENABLE is 1. Null on the CPU, and where messages go through host memory, in which case
// rank 0 prints the reason. Collective. `world` must outlive the result.
std::unique_ptr<comm::Communicator> gpu_ranks(comm::Communicator& world);

// Returns body(world), with the communicator of gpu_ranks() in place of `world` if there is one.
template <class Body>
auto by_gpus(comm::Communicator& world, Body&& body) {
  const auto gpus = gpu_ranks(world);
  return body(gpus ? *gpus : world);
}

}  // namespace penstock::cli
