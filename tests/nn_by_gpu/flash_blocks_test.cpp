// SPDX-License-Identifier: Apache-2.0
// The fused backward by blocks of queries and keys, beside that of one call.
#include <gtest/gtest.h>

#include "nn/kernels/cuda/flash.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using nn::kernels::AttentionGradients;
using nn::kernels::Mask;
namespace cuda = nn::kernels::cuda;

TEST(FlashBlocks, AddUpToTheGradientsOfOneCall) {
  constexpr std::int64_t kTokens = 70, kWidth = 16;
  for (const Mask mask : {Mask::Causal, Mask::None}) {
    for (const std::int64_t keys : {kTokens, std::int64_t{45}}) {
      if (mask == Mask::Causal && keys != kTokens) continue;
      const auto made = [](std::int64_t heads, std::int64_t tokens, int seed) {
        return random_tensor({2, heads, tokens, kWidth}, at::kBFloat16, seed);
      };
      const at::Tensor query = made(4, kTokens, 1), key = made(2, keys, 2), value = made(2, keys, 3);
      const at::Tensor gradient = made(4, kTokens, 4);
      const auto merged = cuda::flash(query, key, value, mask);
      const auto by = [&](std::int64_t block) {
        return cuda::flash_backward_by_blocks(gradient, query, key, value, merged, mask, block);
      };
      const AttentionGradients whole = by(4096), blocks = by(32);
      EXPECT_EQ(whole.query.scalar_type(), at::kBFloat16) << "one call";
      EXPECT_EQ(blocks.query.scalar_type(), at::kFloat) << "sums of several";
      expect_near(blocks.query, whole.query.to(at::kFloat), 2e-2, "query");
      expect_near(blocks.key, whole.key.to(at::kFloat), 2e-2, "key");
      expect_near(blocks.value, whole.value.to(at::kFloat), 2e-2, "value");
    }
  }
}

// Their blocks of keys are longer, so that a call has no more pairs than a square one.
TEST(FlashBlocks, OfFewQueriesAreLongerThanTheBlock) {
  constexpr std::int64_t kQueries = 64, kWidth = 16, kBlock = 128;
  const auto expect_blocks = [&](std::int64_t keys, at::ScalarType type) {
    const auto made = [](std::int64_t heads, std::int64_t tokens, int seed) {
      return random_tensor({2, heads, tokens, kWidth}, at::kBFloat16, seed);
    };
    const at::Tensor query = made(4, kQueries, 1), key = made(2, keys, 2), value = made(2, keys, 3);
    const at::Tensor gradient = made(4, kQueries, 4);
    const auto merged = cuda::flash(query, key, value, Mask::None);
    const AttentionGradients whole = cuda::flash_backward(gradient, query, key, value, merged, Mask::None);
    const AttentionGradients blocks =
        cuda::flash_backward_by_blocks(gradient, query, key, value, merged, Mask::None, kBlock);
    EXPECT_EQ(blocks.query.scalar_type(), type) << keys;
    EXPECT_EQ(blocks.key.scalar_type(), type) << keys;
    expect_near(blocks.query, whole.query.to(at::kFloat), 2e-2, "query");
    expect_near(blocks.key, whole.key.to(at::kFloat), 2e-2, "key");
    expect_near(blocks.value, whole.value.to(at::kFloat), 2e-2, "value");
  };
  expect_blocks(256, at::kBFloat16);  // one call
  expect_blocks(257, at::kFloat);     // sums of two
  expect_blocks(600, at::kFloat);
}

}  // namespace
}  // namespace penstock::testing
