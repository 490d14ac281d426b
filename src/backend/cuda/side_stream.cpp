// SPDX-License-Identifier: Apache-2.0
#include "backend/side_stream.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace penstock::backend {

struct SideStream::State {
  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/true);
};

struct SideStream::Scope::Guard {
  explicit Guard(const c10::cuda::CUDAStream& stream) : stream(stream) {}
  c10::cuda::CUDAStreamGuard stream;
};

SideStream::SideStream() : state_(std::make_unique<State>()) {}
SideStream::~SideStream() { cudaStreamSynchronize(state_->stream); }

SideStream::Scope::Scope(SideStream& stream) : guard_(std::make_unique<Guard>(stream.state_->stream)) {}
SideStream::Scope::~Scope() = default;

}  // namespace penstock::backend
