// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/square_sum.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

namespace kernels = nn::kernels;

TEST(SquareSum, EqualsAPlainSumForAllSizes) {
  for (const std::int64_t size : {0, 1, 7, 8, 9, 16383, 16384, 16385, 100001}) {
    const at::Tensor values = random_tensor({size}, at::kFloat, 5);
    long double sum = 0;
    for (std::int64_t i = 0; i < size; ++i)
      sum += std::pow(static_cast<long double>(values.const_data_ptr<float>()[i]), 2);
    EXPECT_NEAR(kernels::square_sum(values).value(), static_cast<double>(sum),
                1e-12 * static_cast<double>(sum));
    EXPECT_NEAR(kernels::square_sum(values.to(at::kDouble)).value(), static_cast<double>(sum),
                1e-12 * static_cast<double>(sum));
  }
}

TEST(SquareSum, OfPartsCutAtMultiplesOf64AddsUpToTheBit) {
  const at::Tensor values = random_tensor({5000}, at::kFloat, 6);
  for (const std::int64_t cut : {0, 64, 640, 4992, 5000}) {
    ExactSum sum = kernels::square_sum(values.narrow(0, cut, 5000 - cut));
    sum.add(kernels::square_sum(values.narrow(0, 0, cut)));
    EXPECT_EQ(sum.value(), kernels::square_sum(values).value()) << cut;
  }
}

// Of greatly different sizes: each is lost in a sum of f64.
TEST(SquareSum, LosesNothing) {
  at::Tensor values = at::zeros({64 * 70}, at::kDouble);
  for (std::int64_t unit = 0; unit < 70; ++unit)
    values[unit * 64] = std::ldexp(1.0, static_cast<int>(unit * 14 - 500));
  ExactSum wanted;
  for (std::int64_t unit = 0; unit < 70; ++unit)
    wanted.add(std::ldexp(1.0, static_cast<int>(unit * 28 - 1000)));
  EXPECT_EQ(kernels::square_sum(values).words(), wanted.words());
}

TEST(SquareSum, TellsTheCallerWhenAGradientIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    at::Tensor gradient = random_tensor({100}, at::kFloat, 1);
    gradient.mutable_data_ptr<float>()[63] = bad;
    EXPECT_FALSE(std::isfinite(kernels::square_sum(gradient).value()));
  }
}

}  // namespace
}  // namespace penstock::testing
