// SPDX-License-Identifier: Apache-2.0
#include "nn/groups/context_group.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "comm/threads.h"

namespace penstock::nn {
namespace {

// In bf16 each addition of 2^-9 to 1 would be lost.
TEST(ContextGroup, AddsTheGradientOfASharedKeyHeadInF32AndRoundsItOnce) {
  constexpr int kRanks = 4, kTokens = 8, kHeadSize = 2;
  comm::run_ranks(kRanks, [&](comm::Communicator& ranks) {
    const ContextGroup group(ranks, kRanks, ContextMode::Query);
    const double part = ranks.rank() == 0 ? 1 : std::ldexp(1.0, -9);
    const at::Tensor shared = at::full({1, 1, kTokens, kHeadSize}, part, at::kBFloat16);
    const at::Tensor own = group.to_own(shared, 1);
    ASSERT_EQ(own.sizes(), (std::vector<std::int64_t>{1, 1, kTokens / kRanks, kHeadSize}));
    EXPECT_EQ(own.scalar_type(), at::kBFloat16);
    const at::Tensor flat = own.to(at::kDouble).flatten();
    for (std::int64_t i = 0; i < flat.numel(); ++i)
      EXPECT_EQ(flat.data_ptr<double>()[i], 1 + std::ldexp(1.0, -7)) << "1 + 3·2^-9, to the nearest in bf16";
  });
}

}  // namespace
}  // namespace penstock::nn
