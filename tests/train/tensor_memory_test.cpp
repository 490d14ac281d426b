// SPDX-License-Identifier: Apache-2.0
// Memory of runs whose layers are cut into logical shards: as predicted, for every number of ranks that
// carry them.
#include <gtest/gtest.h>

#include "train/mesh_memory.h"

namespace penstock::testing {
namespace {

struct TensorCase {
  int ranks, shards, devices;
  const char* schedule;
  int slices = 1;
  const char* policy = "none";
  const char* precision = "bf16";
  bool tied = false;
  bool vocabulary_parallel = false;
  int replicas = 1;
  const char* shard = "auto";
  Tokens sequence = 512;
  int sequences = 1;  // of a micro-batch
  std::int64_t kv_heads = 4;
};

std::ostream& operator<<(std::ostream& out, const TensorCase& c) {
  return out << c.ranks << " ranks of " << c.shards << " shards, " << c.devices << " devices, " << c.schedule
             << ", " << c.slices << " slices, " << c.policy << ", " << c.precision << ", tied " << c.tied
             << ", vocabulary " << c.vocabulary_parallel << ", " << c.replicas << " replicas, " << c.shard
             << ", " << c.sequences << " sequences of " << c.sequence << ", " << c.kv_heads << " key heads";
}

// Large enough that a scratch buffer of a library is a small share.
run::Run tensor_plan(const TensorCase& c) {
  run::Options options = small_options(c.schedule, c.devices, c.slices, c.precision);
  options.model.shape = {
      .layers = 4, .hidden = 128, .ffn = 351, .heads = 8, .kv_heads = c.kv_heads, .vocab = 1001};
  options.model.shape.tied_embeddings = c.tied;
  options.data.seq_len = c.sequence;
  options.parallel.tp = c.ranks;
  options.numerics.tensor = c.shards;
  options.parallel.dp = c.replicas;
  options.parallel.shard = c.shard;
  options.schedule.vocabulary_parallel = c.vocabulary_parallel;
  options.memory.policy = c.policy;
  options.train.micro_batch = c.sequences;
  options.train.batch = 4 * c.replicas * c.sequences;
  options.train.loss_tile_tokens = 64;
  return planned(options);
}

TEST(TensorMemory, IsAsPredictedForEveryNumberOfRanksThatCarryTheShards) {
  expect_all_predicted<TensorCase>(tensor_plan, {{1, 2, 1, "1f1b"},
                                                 {2, 2, 1, "1f1b"},
                                                 {1, 4, 1, "slimpipe", 4},
                                                 {2, 4, 1, "slimpipe", 4},
                                                 {4, 4, 1, "slimpipe", 4},
                                                 {2, 4, 2, "slimpipe", 4},
                                                 {4, 4, 2, "slimpipe", 4},
                                                 {4, 4, 2, "slimpipe", 4, "none", "f32"},
                                                 {2, 4, 2, "slimpipe", 4, "none", "f32"}});
}

TEST(TensorMemory, IsAsPredictedForEveryPolicy) {
  for (const char* policy : {"none", "balanced", "full"}) {
    expect_all_predicted<TensorCase>(tensor_plan, {{2, 2, 2, "slimpipe", 4, policy},
                                                   {2, 4, 1, "slimpipe", 4, policy, "f32"},
                                                   {2, 2, 2, "1f1b", 1, policy},
                                                   {2, 4, 2, "zb-v", 1, policy},
                                                   {2, 2, 2, "zb-v", 1, policy, "f32"}});
  }
}

TEST(TensorMemory, IsAsPredictedWithReplicasThatShareStates) {
  expect_all_predicted<TensorCase>(tensor_plan,
                                   {{1, 1, 1, "slimpipe", 4, "none", "bf16", false, false, 2, "weights"},
                                    {1, 1, 2, "slimpipe", 4, "none", "bf16", false, false, 2, "weights"},
                                    {1, 1, 1, "slimpipe", 4, "none", "f32", true, false, 2, "weights", 64},
                                    {1, 1, 2, "slimpipe", 4, "none", "f32", true, false, 2, "weights", 64},
                                    {1, 1, 2, "slimpipe", 4, "none", "f32", true, false, 2, "optimizer", 64},
                                    {2, 2, 1, "slimpipe", 4, "none", "bf16", false, false, 2, "weights"},
                                    {2, 2, 2, "slimpipe", 4, "none", "bf16", false, false, 2, "weights"},
                                    {2, 2, 2, "1f1b", 1, "balanced", "bf16", true, false, 2, "optimizer"}});
}

// The sides of a tied embedding meet shard by shard.
TEST(TensorMemory, IsAsPredictedOfTiedEmbeddingsInSeveralShards) {
  for (const int shards : {2, 4})
    expect_all_predicted<TensorCase>(
        tensor_plan, {{1, shards, 2, "slimpipe", 4, "none", "f32", true, false, 1, "auto", 64},
                      {1, shards, 2, "slimpipe", 4, "full", "bf16", true, false, 2, "optimizer", 64}});
}

TEST(TensorMemory, IsAsPredictedForUnevenTokensAndSharedKeyHeads) {
  expect_all_predicted<TensorCase>(
      tensor_plan, {{2, 2, 2, "slimpipe", 3, "none", "bf16", false, false, 1, "auto", 509},
                    {2, 4, 1, "slimpipe", 3, "full", "bf16", true, false, 1, "auto", 509, 2},
                    {4, 4, 1, "slimpipe", 4, "balanced", "f32", true, false, 1, "auto", 512, 1, 2}});
}

TEST(TensorMemory, IsAsPredictedWithAVocabularyOverAllRanks) {
  expect_all_predicted<TensorCase>(tensor_plan, {{2, 2, 1, "slimpipe", 4, "none", "bf16", false, true},
                                                 {2, 2, 2, "slimpipe", 4, "none", "bf16", false, true},
                                                 {2, 4, 2, "slimpipe", 4, "balanced", "bf16", true, true},
                                                 {4, 4, 2, "slimpipe", 4, "full", "f32", false, true}});
}

}  // namespace
}  // namespace penstock::testing
