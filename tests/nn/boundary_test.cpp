// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/boundary.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "nn/kernels/matmul.h"

namespace penstock::nn {
namespace {

const at::Tensor square = at::randn({4, 4});

TEST(Boundary, StandsBeforeEveryKernel) {
  int times = 0;
  const std::function<void()> count = [&] { ++times; };
  kernels::product(square, square);
  {
    const BoundaryScope scope(count);
    for (int i = 1; i <= 3; ++i) {
      kernels::product(square, square);
      EXPECT_EQ(times, i);
    }
  }
  kernels::product(square, square);
  EXPECT_EQ(times, 3) << "outside the scope";
}

TEST(Boundary, DoesNothingInsideItsOwnWork) {
  int times = 0;
  const std::function<void()> multiply = [&] {
    ++times;
    kernels::product(square, square);
  };
  const BoundaryScope scope(multiply);
  kernels::product(square, square);
  kernels::product(square, square);
  EXPECT_EQ(times, 2);
}

TEST(Boundary, PassesExceptionsOnAndStaysWhole) {
  bool fails = true;
  int times = 0;
  const std::function<void()> work = [&] {
    ++times;
    if (fails) throw std::runtime_error("a partner is gone");
  };
  const BoundaryScope scope(work);
  EXPECT_THROW(kernels::product(square, square), std::runtime_error);
  fails = false;
  kernels::product(square, square);
  EXPECT_EQ(times, 2);
}

}  // namespace
}  // namespace penstock::nn
