// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/boundary.h"

#include <utility>

namespace penstock::nn {
namespace {

thread_local const std::function<void()>* work_now = nullptr;

struct Restore {
  const std::function<void()>* work;
  ~Restore() { work_now = work; }
};

}  // namespace

void at_boundary() {
  if (!work_now) return;
  const Restore restore{std::exchange(work_now, nullptr)};
  (*restore.work)();
}

BoundaryScope::BoundaryScope(const std::function<void()>& work) : previous_(std::exchange(work_now, &work)) {}
BoundaryScope::~BoundaryScope() { work_now = previous_; }

}  // namespace penstock::nn
