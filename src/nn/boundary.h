// SPDX-License-Identifier: Apache-2.0
// Operation boundaries: moments between two kernels at which the computing thread may turn to other work, as
// to a request of another device. Every kernel begins with one (profile.h).
#pragma once

#include <functional>

namespace penstock::nn {

// Does what the innermost BoundaryScope of this thread asks for; without one, nothing. Boundaries inside that
// work do nothing. Passes its exceptions on.
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
