// SPDX-License-Identifier: Apache-2.0
// Records of one rank of a mesh, in parts of the whole.
#include <gtest/gtest.h>

#include "sim/costs/bytes.h"

namespace penstock::sim {
namespace {

const schedule::Key kFirst = schedule::make_key(0, 0, 0), kLast = schedule::make_key(0, 0, 1);

Work work_of(int tensor, model::ContextSplit context, std::int64_t kv_heads = 8) {
  Work work;
  work.shape = {.layers = 2, .hidden = 64, .ffn = 192, .heads = 8, .kv_heads = kv_heads};
  work.mesh.tensor = tensor;
  work.mesh.context = static_cast<int>(context.ranks);
  work.context = context;
  work.layers = {{0, 2}};
  work.slices = {{{0, 64}, {64, 64}}};
  work.sequences = 2;
  return work;
}

constexpr model::ContextSplit kSplits[] = {
    {}, {.ranks = 2}, {.ranks = 4, .heads = 4}, {.ranks = 4, .heads = 2}};

TEST(RecordBytes, AreDividedByTensorAndContextRanksExactly) {
  const RunBytes whole(work_of(1, {}));
  for (const int tensor : {1, 2}) {
    for (const model::ContextSplit& split : kSplits) {
      const RunBytes part(work_of(tensor, split));
      const Bytes ranks = tensor * split.ranks;
      for (const schedule::Key& key : {kFirst, kLast}) {
        EXPECT_EQ(ranks * part.record(key).record, whole.record(key).record);
        EXPECT_EQ(ranks * part.record(key).weight_record, whole.record(key).weight_record);
        EXPECT_EQ(ranks * part.record(key).kv_gradient, whole.record(key).kv_gradient);
        EXPECT_EQ(ranks * part.leavable(key), whole.leavable(key));
      }
    }
  }
}

Work keys_only(Work work) {
  work.keep.assign(2, model::KeepSet{}.with(model::SavedTensor::KeyValue));
  return work;
}

TEST(RecordBytes, KeepTheKeysOfAllRanksWhereTheyAreGathered) {
  const RunBytes whole(keys_only(work_of(1, {}))), rank(keys_only(work_of(1, {.ranks = 4, .gathers = true})));
  EXPECT_EQ(rank.record(kFirst).record, whole.record(kFirst).record);
  EXPECT_EQ(rank.record(kFirst).kv_gradient, whole.record(kFirst).kv_gradient);
  EXPECT_EQ(4 * rank.record(kFirst).weight_record, whole.record(kFirst).weight_record);  // of own tokens
}

TEST(RecordBytes, KeepAKeyHeadOnEachRankThatSharesOutMoreHeadsThanThereAre) {
  const RunBytes whole(keys_only(work_of(1, {}, 2))),
      rank(keys_only(work_of(1, {.ranks = 4, .heads = 4}, 2)));
  EXPECT_EQ(2 * rank.record(kFirst).record, whole.record(kFirst).record);
  EXPECT_EQ(2 * rank.record(kFirst).kv_gradient, whole.record(kFirst).kv_gradient);
  EXPECT_EQ(4 * rank.record(kFirst).weight_record, whole.record(kFirst).weight_record);
}

}  // namespace
}  // namespace penstock::sim
