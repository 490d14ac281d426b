// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/profile.h"

#include <exception>
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
  clock_.restart();
}

std::vector<KernelCall> Profile::calls() const {
  std::vector<KernelCall> calls;
  for (const Timed& timed : calls_) {
    calls.push_back(timed.call);
    calls.back().start = clock_.seconds(timed.start);
    calls.back().end = clock_.seconds(timed.end);
  }
  return calls;
}

ProfileScope::ProfileScope(Profile* profile) : previous_(std::exchange(active, profile)) {}
ProfileScope::~ProfileScope() { active = previous_; }

bool is_profiled() { return active != nullptr; }

BlockScope::BlockScope(Block block) : previous_(std::exchange(block_now, block)) {}
BlockScope::~BlockScope() { block_now = previous_; }

// While a call is timed no profile is active, so nested calls are not recorded.
KernelTimer::KernelTimer(Kernel kernel, Work work) {
  if (kernels_under_way == 0) at_boundary();
  if (active) {
    timed_.call = {.kernel = kernel, .block = block_now, .flops = work.flops, .bytes = work.bytes};
    timed_.start = backend::moment_now();
  }
  ++kernels_under_way;
  profile_ = std::exchange(active, nullptr);
}

KernelTimer::~KernelTimer() {
  --kernels_under_way;
  if (!profile_) return;
  active = profile_;
  try {
    timed_.end = backend::moment_now();
    profile_->calls_.push_back(std::move(timed_));
  } catch (const std::exception&) {  // a lost GPU, which the kernel itself or the next one reports
  }
}

}  // namespace penstock::nn
