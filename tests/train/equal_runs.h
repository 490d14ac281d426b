// SPDX-License-Identifier: Apache-2.0
// Two ways to carry out one run, which have the same bits.
#pragma once

#include <gtest/gtest.h>

#include "nn/tensor_checks.h"
#include "train/small_run.h"

namespace penstock::testing {

inline void expect_equal_runs(const Trained& got, const Trained& wanted) {
  EXPECT_EQ(got.losses, wanted.losses);
  EXPECT_EQ(got.norms, wanted.norms);
  ASSERT_EQ(got.weights.size(), wanted.weights.size());
  for (const auto& [name, weight] : wanted.weights) expect_same_bits(got.weights.at(name), weight, name);
}

}  // namespace penstock::testing
