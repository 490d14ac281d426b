// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/profile.h"

#include <utility>

#include "nn/kernels/boundary.h"

namespace penstock::nn {
namespace {

thread_local Profile* active = nullptr;
thread_local Block block_now = Block::Stream;
thread_local int kernels_under_way = 0;  // nesting depth

}  // namespace

std::string_view name_of(Kernel kernel) {
  constexpr std::string_view names[kKernels] = {"product",
                                                "product backward",
                                                "weight gradient",
                                                "attention",
                                                "attention backward",
                                                "merge",
                                                "sum",
                                                "norm",
                                                "norm backward",
                                                "rotation",
                                                "rotation backward",
                                                "swiglu",
                                                "swiglu backward",
                                                "loss",
                                                "embedding",
                                                "embedding backward",
                                                "adam",
                                                "route",
                                                "dispatch",
                                                "combine"};
  return names[static_cast<std::size_t>(kernel)];
}

std::string_view name_of(Block block) {
  constexpr std::string_view names[kBlocks] = {"residual stream",  "attention", "feed forward",
                                               "weight gradients", "output",    "optimizer"};
  return names[static_cast<std::size_t>(block)];
}

void Profile::restart() {
  calls_.clear();
  began_ = steady_seconds();
}

ProfileScope::ProfileScope(Profile* profile) : previous_(std::exchange(active, profile)) {}
ProfileScope::~ProfileScope() { active = previous_; }

BlockScope::BlockScope(Block block) : previous_(std::exchange(block_now, block)) {}
BlockScope::~BlockScope() { block_now = previous_; }

// While a call is timed no profile is active, so nested calls are not recorded.
KernelTimer::KernelTimer(Kernel kernel, Work work) {
  if (kernels_under_way == 0) at_boundary();
  ++kernels_under_way;
  profile_ = active;
  if (!profile_) return;
  active = nullptr;
  call_ = {.kernel = kernel, .block = block_now, .flops = work.flops, .bytes = work.bytes};
  call_.start = steady_seconds() - profile_->began_;
}

KernelTimer::~KernelTimer() {
  --kernels_under_way;
  if (!profile_) return;
  active = profile_;
  call_.end = steady_seconds() - profile_->began_;
  profile_->calls_.push_back(call_);
}

}  // namespace penstock::nn
