// SPDX-License-Identifier: Apache-2.0
// Random tensors and comparisons for the tests of tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace penstock::testing {

// Standard normal values, rounded to the type; the same for the same seed.
inline at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, std::uint64_t seed) {
  at::Tensor values = at::empty(sizes, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    values.data_ptr<double>()[i] = normal(seed, static_cast<std::uint64_t>(i));
  }
  return values.to(type);
}

inline at::Tensor random_ids(std::int64_t count, std::int64_t below, std::uint64_t seed) {
  at::Tensor ids = at::empty({count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    ids.data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(
        random_bits(seed, static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(below));
  }
  return ids;
}

// A leaf of autograd in f64 with x's values.
inline at::Tensor leaf(const at::Tensor& x) {
  return x.detach().to(at::kDouble).clone().set_requires_grad(true);
}

// Greatest difference, as a share of the greatest wanted value (of 1 if that is smaller).
inline void expect_near(const at::Tensor& got, const at::Tensor& wanted, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  const at::Tensor exact = wanted.detach().to(at::kDouble);
  const double difference = (got.to(at::kDouble).sub(exact)).abs().max().item<double>();
  EXPECT_LT(difference, tolerance * std::max(1.0, exact.abs().max().item<double>())) << what;
}

inline void expect_same_bits(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  EXPECT_EQ(a.scalar_type(), b.scalar_type()) << what;
  EXPECT_TRUE(at::equal(a, b)) << what;
}

// A few units in the last place of results of size one, for kernels with sums of a few hundred terms.
inline double tolerance_of(at::ScalarType type) {
  return type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 1e-2;
}

inline constexpr at::ScalarType kComputeTypes[] = {at::kDouble, at::kFloat, at::kBFloat16};

}  // namespace penstock::testing
