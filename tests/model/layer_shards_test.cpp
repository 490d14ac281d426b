// SPDX-License-Identifier: Apache-2.0
// What the first tensor-parallel rank has of a layer, and what its actions take while they run.
#include "model/memory/layer_shards.h"

#include <gtest/gtest.h>

#include "model/memory/action.h"
#include "model/memory/visit.h"

namespace penstock::model {
namespace {

// Ffn columns and tokens divide by nothing.
Shape shape(std::int64_t kv_heads = 4) {
  return {.layers = 2, .hidden = 64, .ffn = 107, .heads = 8, .kv_heads = kv_heads, .vocab = 259};
}
constexpr Tokens kRows = 45;

constexpr SavedTensor kOfOurs[] = {
    SavedTensor::LayerInput,    SavedTensor::NormOneOutput, SavedTensor::Query,
    SavedTensor::KeyValue,      SavedTensor::NormTwoInput,  SavedTensor::AttentionOutput,
    SavedTensor::NormTwoOutput, SavedTensor::GateUp,        SavedTensor::Product};

// Element by element: the row blocks, heads and columns of shards 0 .. T/t - 1.
Bytes plain_kept(SavedTensor tensor, TensorSplit split, std::int64_t kv_heads) {
  const bool rows = cut_by_tokens(shape(kv_heads)).has(tensor);
  Bytes sum = 0;
  for (std::int64_t shard = 0; shard < split.per_rank(); ++shard) {
    const std::int64_t own = kRows / split.shards + (shard < kRows % split.shards ? 1 : 0);
    const std::int64_t ffn = 107 / split.shards + (shard < 107 % split.shards ? 1 : 0);
    const std::int64_t heads = 8 / split.shards, keys = std::max<std::int64_t>(kv_heads / split.shards, 1);
    sum += rows                              ? own * 64
           : tensor == SavedTensor::GateUp   ? kRows * 2 * ffn
           : tensor == SavedTensor::Product  ? kRows * ffn
           : tensor == SavedTensor::KeyValue ? kRows * 2 * keys * 8
                                             : kRows * heads * 8;
  }
  return 2 * sum;
}

TEST(LayerShards, KeepTheRowsHeadsAndColumnsOfTheirBlocks) {
  for (const std::int64_t kv_heads : {1, 2, 8}) {
    for (const std::int64_t shards : {1, 2, 4, 8}) {
      for (std::int64_t ranks = 1; ranks <= shards; ranks *= 2) {
        const TensorSplit split{shards, ranks};
        const LayerShards layer(shape(kv_heads), split, kRows);
        for (const SavedTensor tensor : kOfOurs) {
          EXPECT_EQ(layer.kept(KeepSet{}.with(tensor), 2), plain_kept(tensor, split, kv_heads))
              << kSavedTensorNames[static_cast<std::size_t>(tensor)] << " of " << shards << " on " << ranks;
        }
        EXPECT_EQ(layer.statistics(keep_of(Policy::None), 4),
                  4 * (2 * layer.own_rows() + kRows * 8 / shards * split.per_rank()));
      }
    }
  }
}

TEST(LayerShards, OfOneShardAreTheWholeLayer) {
  const LayerShards layer(shape(), {}, kRows);
  EXPECT_EQ(layer.own_rows(), kRows);
  for (const Policy policy : {Policy::None, Policy::Balanced, Policy::Full}) {
    EXPECT_EQ(layer.kept(keep_of(policy), 2), kRows * kept_bytes(shape(), keep_of(policy), 2));
    EXPECT_EQ(layer.statistics(keep_of(policy), 4), kRows * statistics_bytes(shape(), keep_of(policy), 4));
  }
}

// In f64, whose products need no scratch.
ActionMemory memory_of(TensorSplit split, ActionKind kind, KeepSet keep = keep_of(Policy::None)) {
  const ActionSize size{.shape = shape(), .tensor = split, .keep = {keep, keep}, .tokens = kRows};
  return action_memory(size, {.precision = Precision::F64}, kind);
}

TEST(LayerShards, TakeAGatheredTensorAloneToFormWeightGradients) {
  EXPECT_EQ(memory_of({}, ActionKind::BackwardWeight).temporary, 0);
  for (const TensorSplit split : {TensorSplit{2, 1}, TensorSplit{2, 2}, TensorSplit{4, 2}})
    EXPECT_EQ(memory_of(split, ActionKind::BackwardWeight).temporary, kRows * 64 * 8);
}

TEST(LayerShards, TakeLessOnMoreRanks) {
  for (const ActionKind kind : {ActionKind::Forward, ActionKind::Backward, ActionKind::BackwardInput}) {
    for (const Policy policy : {Policy::None, Policy::Balanced, Policy::Full}) {
      Bytes before = memory_of({8, 1}, kind, keep_of(policy)).growth;
      for (const std::int64_t ranks : {2, 4, 8}) {
        const Bytes now = memory_of({8, ranks}, kind, keep_of(policy)).growth;
        EXPECT_LT(now, before) << ranks;
        before = now;
      }
    }
  }
}

// The last layer's product down to h, which a forward without attention over others ends with: parts of all
// rows, those received for the own rows, and their sum, beside what the layer has kept or made.
TEST(LayerShards, ScatterPartsOfAllRows) {
  ActionSize size{.shape = shape(), .tensor = {2, 2}, .keep = {keep_of(Policy::None)}, .tokens = 46};
  const Bytes hidden = 23 * 64 * 8;  // own rows
  const LayerShards layer(size.shape, size.tensor, 46);
  const Bytes record = layer.kept(keep_of(Policy::None), 8) + layer.statistics(keep_of(Policy::None), 8);
  EXPECT_EQ(action_memory(size, {.precision = Precision::F64}, ActionKind::Forward).growth,
            record + 2 * hidden + hidden + hidden);
}

TEST(LayerShards, OfFewerTokensThanShardsAreSomeWithoutRows) {
  for (const Precision precision : {Precision::F64, Precision::F32, Precision::BF16}) {
    for (const ActionKind kind : {ActionKind::Forward, ActionKind::Backward, ActionKind::BackwardWeight}) {
      const ActionSize size{.shape = shape(), .tensor = {8, 8}, .keep = {keep_of(Policy::Full)}, .tokens = 3};
      EXPECT_GT(action_memory(size, {.precision = precision}, kind).growth, 0);
    }
  }
}

// The loss of tensor-parallel ranks is a visit of theirs: everything that is of the vocabulary is shared out.
TEST(LayerShards, FormTheLossTogether) {
  const auto visit = [](TensorSplit split, std::int64_t stages, bool last) {
    return visit_memory(
        {.shape = shape(), .tensor = split, .stages = stages, .last = last, .tokens = 32, .loss_tile = 32},
        {.precision = Precision::F64});
  };
  const Bytes element = 8, part = 32 * 64 * element;
  for (const TensorSplit split : {TensorSplit{4, 4}, TensorSplit{4, 2}, TensorSplit{4, 1}}) {
    const VisitMemory memory = visit(split, 1, true);
    EXPECT_EQ(memory.logits, 32 * split.per_rank() * 65 * element) << "259 rows, padded to four blocks";
    EXPECT_EQ(memory.messages, part + (split.ranks - 1) * part / split.ranks)
        << "the own part, the others' parts of the own rows";
  }
  const VisitMemory of_pipeline = visit({2, 2}, 2, false);
  EXPECT_EQ(of_pipeline.logits, 32 * 65 * element);
  EXPECT_EQ(of_pipeline.messages, 2 * part + part / 2 + part / 4)
      << "hidden states of all rows, the own part, the other rank's of half the rows, another stage's of a "
         "quarter";

  ActionSize size{.shape = shape(),
                  .tensor = {4, 2},
                  .keep = {keep_of(Policy::None)},
                  .tokens = 32,
                  .last_stage = true,
                  .loss_tile = 32};
  const KernelSetting setting{.precision = Precision::F64};
  const ActionMemory forward = action_memory(size, setting, ActionKind::Forward);
  EXPECT_EQ(forward.logits, visit({4, 2}, 1, true).logits);
  EXPECT_EQ(forward.messages, visit({4, 2}, 1, true).messages);
  size.sharded_vocabulary = true;
  EXPECT_EQ(action_memory(size, setting, ActionKind::Forward).logits, 0) << "the pipeline's visit forms it";
}

}  // namespace
}  // namespace penstock::model
