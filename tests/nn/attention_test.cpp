// SPDX-License-Identifier: Apache-2.0
// Attention over chunks of keys, merged, against plain softmax attention over the whole sequence and its
// autograd.
#include "nn/kernels/attention.h"

#include "nn/attention_sequences.h"

namespace penstock::testing {
namespace {

TEST(Attention, OverChunksEqualsPlainAttentionAndItsAutograd) {
  for (const Sizes& sizes : all_sizes())
    expect_equals_autograd(sizes, at::kDouble, AttentionKernel::Aten, 1e-12);
}

TEST(Attention, InsideDocumentsEqualsPlainAttentionAndItsAutograd) {
  for (const Sizes& sizes : all_sizes()) {
    for (const std::uint64_t longest : {1, 3, 50}) {
      expect_equals_autograd(sizes, at::kDouble, AttentionKernel::Aten, 1e-12, longest);
      expect_equals_autograd(sizes, at::kFloat, AttentionKernel::Aten, 1e-5, longest);
    }
  }
}

TEST(Attention, InNarrowTypesIsAsGoodAsTheirRounding) {
  for (const Sizes& sizes : all_sizes()) {
    expect_equals_autograd(sizes, at::kFloat, AttentionKernel::Aten, 1e-5);
    expect_equals_autograd(sizes, at::kBFloat16, AttentionKernel::Aten, 2e-2);
  }
}

TEST(Attention, LogSumExpIsThatOfTheScoresSeen) {
  const Sequences all({4, 2, {5, 3}}, at::kDouble, AttentionKernel::Aten);
  const at::Tensor keys = all.key.repeat_interleave(2, 1);
  const at::Tensor scores = at::matmul(all.query, keys.transpose(-1, -2)) / std::sqrt(6.0);
  const at::Tensor hidden_from = at::ones({8, 8}, at::kBool).triu(1);
  const at::Tensor wanted = scores.masked_fill(hidden_from, -INFINITY).logsumexp(-1);
  expect_near(forward(all, 1).log_sum_exp, wanted.narrow(2, 5, 3), 1e-12, "log-sum-exp");
}

TEST(Merge, PartsOfVeryDifferentWeightStayFinite) {
  AttentionPart total{random_tensor({1, 1, 1, 4}, at::kFloat, 1),
                      at::zeros({1, 1, 1}, at::kFloat).fill_(-500.0)};
  const AttentionPart heavy{random_tensor({1, 1, 1, 4}, at::kFloat, 2),
                            at::zeros({1, 1, 1}, at::kFloat).fill_(500.0)};
  kernels::merge(total, heavy);
  expect_same_bits(total.output, heavy.output, "the heavy part is all that counts");
  expect_same_bits(total.log_sum_exp, heavy.log_sum_exp, "and its log-sum-exp");
}

}  // namespace
}  // namespace penstock::testing
