// SPDX-License-Identifier: Apache-2.0
// Memory of runs with experts: as predicted, where the routers send every expert as many rows.
#include <gtest/gtest.h>

#include "train/mesh_memory.h"

namespace penstock::testing {
namespace {

struct ExpertCase {
  int expert, tensor, context, replicas, devices;
  const char* schedule;
  int slices = 1;
  const char* policy = "none";
  const char* precision = "bf16";
  const char* shard = "auto";
  bool head_norms = false;
  int shared_ffn = 0;
  bool shared_gate = false;
};

std::ostream& operator<<(std::ostream& out, const ExpertCase& c) {
  return out << "e " << c.expert << ", t " << c.tensor << ", c " << c.context << ", d " << c.replicas
             << ", p " << c.devices << ", " << c.schedule << ", n " << c.slices << ", " << c.policy << ", "
             << c.precision << ", shard " << c.shard << ", norms of heads " << c.head_norms << ", shared "
             << c.shared_ffn << ", gate " << c.shared_gate;
}

run::Run experts_plan(const ExpertCase& c) {
  run::Options options = small_options(c.schedule, c.devices, c.slices, c.precision);
  options.model.shape = {.layers = 4,
                         .hidden = 128,
                         .ffn = 176,
                         .heads = 8,
                         .kv_heads = 4,
                         .vocab = 1001,
                         .head_norms = c.head_norms,
                         .experts = 8,
                         .experts_per_token = 2,
                         .shared_ffn = c.shared_ffn,
                         .shared_gate = c.shared_gate};
  options.data.seq_len = 512;
  options.moe = {.balance_coefficient = 0.01, .forced_balance = true};
  options.parallel.ep = c.expert;
  options.parallel.tp = c.tensor;
  options.parallel.cp = c.context;
  options.parallel.dp = c.replicas;
  options.parallel.shard = c.shard;
  options.memory.policy = c.policy;
  options.train.batch = 4 * c.replicas;
  options.train.loss_tile_tokens = 64;
  return planned(options);
}

TEST(ExpertMemory, IsAsPredictedForEveryPolicy) {
  for (const char* policy : {"none", "balanced", "balanced+fc1", "full"}) {
    expect_all_predicted<ExpertCase>(
        experts_plan, {{1, 1, 1, 1, 1, "1f1b", 1, policy},
                       {1, 1, 1, 1, 2, "slimpipe", 4, policy, "f32"},
                       {1, 1, 1, 1, 2, "zb-v", 1, policy},
                       {1, 1, 1, 1, 2, "slimpipe", 4, policy, "bf16", "auto", true},
                       {1, 1, 1, 1, 2, "slimpipe", 4, policy, "bf16", "auto", false, 160, true}});
  }
}

// Attention's backward has the greatest peak: the experts' input does not stay in the record until then.
TEST(ExpertMemory, IsExactWhereAttentionsBackwardNeedsMost) {
  for (const char* policy : {"none", "full"}) {
    SCOPED_TRACE(policy);
    run::Options options = experts_plan({1, 1, 1, 1, 1, "slimpipe", 2, policy, "f32"}).options;
    options.model.shape.ffn = 64;
    options.model.shape.head_size = 32;
    const run::Run run = planned(options);
    const MeasuredPeaks measured = memory_of_steps(run).greatest.front();
    EXPECT_EQ(run.predicted.front().transient, measured[model::Category::Transient]);
    EXPECT_EQ(run.predicted.front().total(), measured.total);
  }
}

TEST(ExpertMemory, IsAsPredictedForEveryMesh) {
  expect_all_predicted<ExpertCase>(
      experts_plan, {{1, 2, 1, 1, 1, "slimpipe", 4},
                     {1, 1, 2, 1, 2, "slimpipe", 4},
                     {1, 1, 1, 2, 1, "1f1b"},
                     {2, 1, 1, 2, 1, "1f1b"},
                     {2, 1, 1, 2, 2, "slimpipe", 4, "balanced"},
                     {2, 2, 1, 1, 2, "slimpipe", 4, "none", "f32"},
                     {2, 1, 1, 4, 1, "slimpipe", 4, "full", "bf16", "optimizer"},
                     {4, 2, 1, 2, 1, "1f1b", 1, "none", "bf16", "weights"},
                     {2, 2, 2, 1, 1, "slimpipe", 4, "balanced", "bf16", "weights"},
                     {2, 2, 1, 2, 1, "slimpipe", 4, "none", "f32", "weights", false, 96},
                     {2, 1, 1, 2, 2, "zb-h1", 1, "balanced", "bf16", "auto", false, 96, true}});
}

}  // namespace
}  // namespace penstock::testing
