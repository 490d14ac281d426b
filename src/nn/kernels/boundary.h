// SPDX-License-Identifier: Apache-2.0
// Operation boundaries: points between two kernels where the computing thread may do other work, such as
// serving a request of another device. Every kernel begins with one (profile.h).
#pragma once

#include <functional>

namespace penstock::nn {

// Runs the work of this thread's innermost BoundaryScope, if any; boundaries inside that work do nothing.
// Propagates its exceptions.
void at_boundary();

class BoundaryScope {
 public:
  // `work` must outlive the scope.
  explicit BoundaryScope(const std::function<void()>& work);
  ~BoundaryScope();
  BoundaryScope(const BoundaryScope&) = delete;
  BoundaryScope& operator=(const BoundaryScope&) = delete;

 private:
  const std::function<void()>* previous_;
};

}  // namespace penstock::nn
