// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/profile.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <thread>

#include "nn/kernels/matmul.h"
#include "nn/kernels/swiglu.h"

namespace penstock::nn {
namespace {

TEST(Profile, NotesEachKernelWithItsBlockAndWork) {
  const at::Tensor x = at::randn({3, 5}), weight = at::randn({7, 5});
  Profile profile;
  const ProfileScope scope(&profile);
  {
    const BlockScope block(Block::FeedForward);
    kernels::product(x, weight);
  }
  kernels::swiglu(x, x);
  const std::vector<KernelCall> calls = profile.calls();
  ASSERT_EQ(calls.size(), 2u);
  const KernelCall &product = calls[0], &swiglu = calls[1];
  EXPECT_EQ(product.kernel, Kernel::Product);
  EXPECT_EQ(product.block, Block::FeedForward);
  EXPECT_EQ(product.flops, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(swiglu.kernel, Kernel::Swiglu);
  EXPECT_EQ(swiglu.block, Block::Stream);
  EXPECT_EQ(swiglu.bytes, 3.0 * 15 * sizeof(float));
  EXPECT_LE(0, product.start);
  EXPECT_LE(product.start, product.end);
  EXPECT_LE(product.end, swiglu.start);
}

TEST(Profile, CountsAKernelThatCallsAnotherOnce) {
  const at::Tensor grad_output = at::randn({4, 6}).to(at::kBFloat16), x = at::randn({4, 2}).to(at::kBFloat16);
  at::Tensor gradient = at::zeros({6, 2});
  Profile profile;
  const ProfileScope scope(&profile);
  kernels::accumulate_weight_gradient(gradient, grad_output, x, kernels::Bf16Products::Native);
  ASSERT_EQ(profile.calls().size(), 1u);
  EXPECT_EQ(profile.calls()[0].kernel, Kernel::WeightGradient);
}

TEST(Profile, HoldsWhatItsOwnThreadDidWhileItsScopeWasOpen) {
  const at::Tensor x = at::randn({3, 5});
  Profile profile;
  kernels::swiglu(x, x);
  {
    const ProfileScope scope(&profile);
    std::thread([&] { kernels::swiglu(x, x); }).join();
    const ProfileScope paused(nullptr);
    kernels::swiglu(x, x);
  }
  kernels::swiglu(x, x);
  EXPECT_TRUE(profile.calls().empty());
}

}  // namespace
}  // namespace penstock::nn
