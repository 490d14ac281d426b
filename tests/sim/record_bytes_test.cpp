// SPDX-License-Identifier: Apache-2.0
// Records of one rank of a mesh, in parts of the whole.
#include <gtest/gtest.h>

#include "sim/costs/bytes.h"
#include "sim/small_work.h"

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

TEST(RunBytes, RecordsAreTheTableOfSavedTensors) {
  Work work = small_work(4);
  work.shape.kv_heads = 2;
  const RunBytes bytes(work);
  const Bytes h = work.shape.hidden, f = work.shape.ffn, kv = work.shape.kv_width();
  const Bytes token_layers = 3 * 256 * 2;
  const Bytes statistics = 4 * work.shape.heads + 2 * 4;
  EXPECT_EQ(bytes.record({0, 0, 0}).record, token_layers * (12 * h + 4 * kv + 6 * f + statistics));
  EXPECT_EQ(bytes.record({1, 0, 0}).logits - bytes.record({0, 0, 0}).logits, 3 * 256 * h * 2);
  EXPECT_EQ(bytes.record({0, 0, 0}).kv_gradient, token_layers * 8 * kv);
  EXPECT_EQ(bytes.record({0, 0, 3}).kv_gradient, 0) << "no later slice adds to the last one's";
  EXPECT_EQ(RunBytes(small_work(1)).record({0, 0, 0}).kv_gradient, 0);
}

TEST(RunBytes, OfTensorRanksAddUpAndDependOnTheShards) {
  Work work = small_work(4);
  work.shape.kv_heads = 2;
  const RunBytes whole(work);
  const auto sharded = [&](int ranks, std::int64_t shards) {
    Work part = work;
    part.mesh.tensor = ranks;
    part.tensor_shards = shards;
    return RunBytes(part);
  };
  const schedule::Key key{1, 0, 1};
  for (const int ranks : {1, 2}) {
    const RunBytes bytes = sharded(ranks, 2);
    EXPECT_EQ(ranks * bytes.record(key).record, whole.record(key).record);
    EXPECT_EQ(ranks * bytes.record(key).weight_record, whole.record(key).weight_record);
    EXPECT_EQ(ranks * bytes.record(key).kv_gradient, whole.record(key).kv_gradient);
    EXPECT_EQ(ranks * bytes.record(key).logits, whole.record(key).logits);
    EXPECT_EQ(ranks * bytes.leavable(key), whole.leavable(key));
    EXPECT_EQ(ranks * bytes.hidden_bytes(0, 1), whole.hidden_bytes(0, 1));
  }
  // Eight shards have a key head each, where the model has two.
  const Bytes six_heads = 2 * 3 * 256 * 2 * 6 * work.shape.head_dim();
  EXPECT_EQ(sharded(1, 8).record(key).record, whole.record(key).record + 2 * six_heads);
  EXPECT_EQ(sharded(1, 8).record(key).kv_gradient, whole.record(key).kv_gradient + 4 * six_heads);
  EXPECT_EQ(8 * sharded(8, 0).record(key).record, sharded(1, 8).record(key).record) << "0: as many as ranks";
}

// Three tokens over two ranks: the first has two of them, and 44 of 87 columns.
TEST(RunBytes, OfUnevenBlocksAreThoseOfTheLongest) {
  Work work = small_work(1);
  work.sequences = 1;
  work.slices = {{{0, 3}}};
  work.shape.ffn = 87;
  work.mesh.tensor = 2;
  const Bytes h = work.shape.hidden, q = h / 2;
  const RunBytes bytes(work);
  EXPECT_EQ(bytes.hidden_bytes(0, 0), 2 * h * 2);
  EXPECT_EQ(bytes.record({0, 0, 0}).weight_record, 2 * 2 * (2 * 4 * h + 3 * (4 * q + 3 * 44)));
}

}  // namespace
}  // namespace penstock::sim
