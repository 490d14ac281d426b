// SPDX-License-Identifier: Apache-2.0
// The log-sum-exps that cuDNN reads.
#include "nn/kernels/cuda/packed.h"

#include <gtest/gtest.h>

#include <vector>

#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using nn::kernels::cuda::packed;

// Some heads, and some queries of a single head: LibTorch takes both for contiguous in one sequence.
TEST(Packed, HasTheStridesOfItsSizesAlone) {
  for (const std::int64_t sequences : {1, 2}) {
    const at::Tensor all = random_tensor({sequences, 6, 8, 1}, at::kFloat, 1);
    const at::Tensor heads = all.narrow(1, 2, 3), got = packed(heads);
    EXPECT_EQ(got.strides().vec(), (std::vector<std::int64_t>{24, 8, 1, 1}));
    expect_same_bits(got, heads, "heads");
    EXPECT_EQ(got.const_data_ptr() == heads.const_data_ptr(), sequences == 1) << "a view of one sequence";
  }
  const at::Tensor queries = random_tensor({1, 1, 8, 1}, at::kFloat, 2).narrow(2, 4, 4);
  EXPECT_EQ(packed(queries).strides().vec(), (std::vector<std::int64_t>{4, 4, 1, 1}));
  expect_same_bits(packed(queries), queries, "queries");
}

}  // namespace
}  // namespace penstock::testing
