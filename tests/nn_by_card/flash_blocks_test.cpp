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

}  // namespace
}  // namespace penstock::testing
