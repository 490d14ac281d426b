// SPDX-License-Identifier: Apache-2.0
// The room of cuDNN's attention beside what cuDNN 9.19 asked for on an H200, in MiB rounded down.
#include "model/memory/card_attention.h"

#include <gtest/gtest.h>

#include "model/memory/action.h"

namespace penstock::model {
namespace {

struct Observed {
  Tokens queries, keys;
  Bytes repeatable, any_order;
};
// 32 heads of 128, 8 of them for keys and values; of larger repeatable calls there are several.
constexpr Observed kObserved[] = {{4096, 4096, 1088, 128}, {8192, 8192, 4225, 257}};
constexpr Observed kWhole[] = {{4096, 16384, 0, 320}, {16384, 4096, 0, 322}, {16384, 16384, 0, 514}};

Bytes mebibytes(const Observed& call, bool repeatable) {
  const KernelSetting setting{.card = true, .repeatable = repeatable};
  const AttentionSize size{.tokens = call.queries, .heads = 32, .kv_heads = 8, .head_dim = 128};
  const CardBackward backward = card_backward(setting, size, call.keys);
  EXPECT_FALSE(backward.wide);
  return backward.scratch / MiB;
}

TEST(CardAttention, TakesWhatCudnnAskedFor) {
  for (const Observed& call : kObserved) {
    EXPECT_EQ(mebibytes(call, true), call.repeatable) << call.queries;
    EXPECT_EQ(mebibytes(call, false), call.any_order) << call.queries;
  }
  for (const Observed& call : kWhole)
    EXPECT_EQ(mebibytes(call, false), call.any_order) << call.queries << " x " << call.keys;
}

TEST(CardAttention, GoesByBlocksWhereItRepeats) {
  const KernelSetting setting{.card = true};
  const AttentionSize size{.tokens = 16384, .heads = 32, .kv_heads = 8, .head_dim = 128};
  const CardBackward backward = card_backward(setting, size, 16384);
  EXPECT_TRUE(backward.wide);
  // A block's room and its results in bf16, with the log-sum-exps of its queries.
  EXPECT_EQ(backward.scratch, (4225 + 64 + 2 * 16 + 1) * MiB);
}

// Each layer gives back what it takes; what it left would add up.
TEST(CardAttention, LeavesNothingInTheBackwardOfManyLayersByBlocks) {
  const auto temporary = [](std::size_t layers, ContextSplit context) {
    const std::vector<KeepSet> keep(layers, keep_of(Policy::None));
    const ActionSize size{.context = context, .keep = keep, .tokens = 32768};
    return action_memory(size, on_card({}), ActionKind::Backward).temporary;
  };
  EXPECT_EQ(temporary(8, {}), temporary(2, {}));
  EXPECT_EQ(temporary(8, {.ranks = 2, .heads = 2}), temporary(2, {.ranks = 2, .heads = 2}));
}

TEST(CardAttention, TakesTheHeadsOfALargeModelSomeAtATime) {
  const KernelSetting setting{.card = true};
  const auto scratch = [&](std::int64_t heads) {
    return card_backward(setting, {.tokens = 8192, .heads = heads, .kv_heads = heads / 8, .head_dim = 128},
                         8192)
        .scratch;
  };
  EXPECT_EQ(scratch(64), scratch(32));
  EXPECT_LT(scratch(16), scratch(32));
}

// Those of one sequence are packed where they lie.
TEST(CardAttention, CopiesTheLogSumExpsOfSomeHeadsOfSeveralSequences) {
  const auto scratch = [](std::int64_t sequences, std::int64_t heads) {
    const AttentionSize size{
        .sequences = sequences, .tokens = 8192, .heads = heads, .kv_heads = heads / 8, .head_dim = 128};
    return card_backward({.card = true}, size, 8192).scratch;
  };
  EXPECT_EQ(scratch(2, 32), 2 * scratch(1, 32));
  EXPECT_EQ(scratch(2, 64), 2 * scratch(1, 64) + 4 * 2 * 32 * 8192) << "f32, two sequences, 32 heads";
}

}  // namespace
}  // namespace penstock::model
