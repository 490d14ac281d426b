// SPDX-License-Identifier: Apache-2.0
// The room of cuDNN's attention beside what cuDNN 9.19 asked for on an H200, in MiB rounded down.
#include "model/memory/gpu_attention.h"

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
constexpr Observed kRepeatable[] = {{4096, 16384, 4352, 0}, {8192, 2048, 1057, 0}};
constexpr Observed kWhole[] = {
    {4096, 16384, 0, 320}, {16384, 4096, 0, 322}, {16384, 16384, 0, 514}, {16384, 114688, 0, 2050}};

Bytes mebibytes(const Observed& call, bool repeatable) {
  const KernelSetting setting{.gpu = true, .repeatable = repeatable};
  const AttentionSize size{.tokens = call.queries, .heads = 32, .kv_heads = 8, .head_dim = 128};
  const GpuBackward backward = gpu_backward(setting, size, call.keys);
  EXPECT_FALSE(backward.wide);
  return backward.scratch / MiB;
}

TEST(GpuAttention, TakesWhatCudnnAskedFor) {
  for (const Observed& call : kObserved) {
    EXPECT_EQ(mebibytes(call, true), call.repeatable) << call.queries;
    EXPECT_EQ(mebibytes(call, false), call.any_order) << call.queries;
  }
  for (const Observed& call : kRepeatable)
    EXPECT_EQ(mebibytes(call, true), call.repeatable) << call.queries << " x " << call.keys;
  for (const Observed& call : kWhole)
    EXPECT_EQ(mebibytes(call, false), call.any_order) << call.queries << " x " << call.keys;
}

TEST(GpuAttention, GoesByBlocksWhereItRepeats) {
  const KernelSetting setting{.gpu = true};
  const AttentionSize size{.tokens = 16384, .heads = 32, .kv_heads = 8, .head_dim = 128};
  const GpuBackward backward = gpu_backward(setting, size, 16384);
  EXPECT_TRUE(backward.wide);
  // A block's room and its results in bf16, with the log-sum-exps of its queries.
  EXPECT_EQ(backward.scratch, (4225 + 64 + 2 * 16 + 1) * MiB);
}

// 8 heads of 64 with as many for keys: 256 queries over 512 keys, as documents that cover the slice.
TEST(GpuAttention, TakesADocumentsQueriesByThemselves) {
  const AttentionSize size{.sequences = 2, .tokens = 256, .heads = 8, .kv_heads = 8, .head_dim = 64};
  constexpr Bytes kQueries = 256 * 8 * 64, kKeys = 512 * 8 * 64, kRows = 256 * 8;  // numbers of a sequence
  EXPECT_EQ(gpu_forward_scratch(on_gpu({}, true, true), size), 2 * 2 * kQueries + 4 * kRows);
  for (const bool repeatable : {false, true}) {
    const GpuBackward backward = gpu_backward(on_gpu({}, repeatable, true), size, 512);
    EXPECT_TRUE(backward.wide);
    const Bytes sums = repeatable ? 17 : 1;                            // 132 multiprocessors for 8 heads
    EXPECT_EQ(backward.scratch, 3 * 2 * kQueries + 4 * kRows           // copies
                                    + 2 * (kQueries + 2 * kKeys)       // results
                                    + 4 * (sums * kQueries + kRows));  // FlashAttention's
  }
  AttentionSize later = size;
  later.earlier = {256, 256};
  EXPECT_EQ(earlier_calls(on_gpu({}), later).size(), 1U);
  EXPECT_EQ(earlier_calls(on_gpu({}, true, true), later).size(), 2U);
}

// What a tape has beside `left` when its last action is done is seen in the peak of a much larger one.
void expect_nothing_but(Tape& tape, Bytes left) {
  constexpr Bytes kLarge = 1024 * GiB;
  tape.give(left);
  tape.touch(kLarge);
  EXPECT_EQ(tape.greatest_temporary(), kLarge);
}

TEST(GpuAttention, GoesOverManyShortSlicesInOneCall) {
  const KernelSetting setting{.gpu = true};
  const AttentionSize size{
      .tokens = 1024, .earlier = std::vector<Tokens>(32, 1024), .heads = 32, .kv_heads = 8, .head_dim = 128};
  constexpr Bytes kQueries = 8 * MiB, kKeys = 32 * MiB;  // 1,024 and 16,384 of them in bf16
  constexpr Bytes kSums = 4 * MiB;                       // of one slice's keys or values in f32
  const GpuBackward one_call = gpu_backward(setting, size, 16384);
  EXPECT_FALSE(one_call.wide) << "fewer queries than a block's, and more keys";
  for (const bool last_slice : {false, true}) {
    // Of all queries in f32, of the slice's own keys if these begin, of the call; and keys and values joined.
    const Bytes before = 2 * kQueries + (last_slice ? 2 * kSums : 0);
    const Bytes results = kQueries + 2 * kKeys, joined = 2 * kKeys;
    Tape tape;
    EXPECT_EQ(attend_backward(tape, setting, size, last_slice), 2 * kQueries);
    EXPECT_EQ(tape.greatest_temporary(), before + joined + results + one_call.scratch);
    expect_nothing_but(tape, before);
  }
  Tape forward;
  attend(forward, setting, size);
  const Bytes log_sum_exp = 4 * 32 * 1024;
  EXPECT_EQ(forward.greatest_temporary(), 2 * kQueries + 2 * kKeys + kQueries + 2 * log_sum_exp);
  expect_nothing_but(forward, kQueries + log_sum_exp);
}

// The sums that begin are copies, which the GPU's peak has beside what later calls take.
TEST(GpuAttention, KeepsTheSumsThatBeginInAJoinedCall) {
  const KernelSetting setting{.gpu = true};
  const std::vector<Tokens> call(16, 1024);
  const AttentionSize size{.tokens = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128};
  EXPECT_TRUE(gpu_backward(setting, size, 16384).wide) << "by blocks: results in f32";
  const auto growth = [&](bool begins) {
    Tape tape;
    attend_backward_joined(tape, setting, size, call, begins);
    tape.add(1024 * GiB);
    return tape.greatest_growth();
  };
  EXPECT_EQ(growth(false), 1024 * GiB);
  EXPECT_EQ(growth(true), 1024 * GiB + 16 * 2 * 4 * MiB);
}

TEST(GpuAttention, JoinsNothingOnAProcessorAndNoLongSlices) {
  const AttentionSize size{.tokens = 16384, .earlier = {16384, 16384, 1024, 1024}};
  EXPECT_EQ(earlier_calls({.gpu = true}, size).size(), 3u);
  EXPECT_EQ(earlier_calls({}, size).size(), 4u);
  EXPECT_EQ(earlier_calls({.precision = Precision::F32, .gpu = true}, size).size(), 4u);
}

// Each layer gives back what it takes; what it left would add up.
TEST(GpuAttention, LeavesNothingInTheBackwardOfManyLayersByBlocks) {
  const auto temporary = [](std::size_t layers, ContextSplit context) {
    const std::vector<KeepSet> keep(layers, keep_of(Policy::None));
    const ActionSize size{.context = context, .keep = keep, .tokens = 32768};
    return action_memory(size, on_gpu({}), ActionKind::Backward).temporary;
  };
  EXPECT_EQ(temporary(8, {}), temporary(2, {}));
  EXPECT_EQ(temporary(8, {.ranks = 2, .heads = 2}), temporary(2, {.ranks = 2, .heads = 2}));
}

TEST(GpuAttention, TakesTheHeadsOfALargeModelSomeAtATime) {
  const KernelSetting setting{.gpu = true};
  const auto scratch = [&](std::int64_t heads) {
    return gpu_backward(setting, {.tokens = 8192, .heads = heads, .kv_heads = heads / 8, .head_dim = 128},
                        8192)
        .scratch;
  };
  EXPECT_EQ(scratch(64), scratch(32));
  EXPECT_LT(scratch(16), scratch(32));
}

// Those of one sequence are packed where they lie.
TEST(GpuAttention, CopiesTheLogSumExpsOfSomeHeadsOfSeveralSequences) {
  const auto scratch = [](std::int64_t sequences, std::int64_t heads) {
    const AttentionSize size{
        .sequences = sequences, .tokens = 8192, .heads = heads, .kv_heads = heads / 8, .head_dim = 128};
    return gpu_backward({.gpu = true}, size, 8192).scratch;
  };
  EXPECT_EQ(scratch(2, 32), 2 * scratch(1, 32));
  EXPECT_EQ(scratch(2, 64), 2 * scratch(1, 64) + 4 * 2 * 32 * 8192) << "f32, two sequences, 32 heads";
}

}  // namespace
}  // namespace penstock::model
