// SPDX-License-Identifier: Apache-2.0
// Memory of runs whose tokens a context group shares out: as predicted, in every way to form attention.
#include <gtest/gtest.h>

#include "train/mesh_memory.h"

namespace penstock::testing {
namespace {

struct ContextCase {
  int context;
  const char* mode;
  int devices, slices;
  const char* policy = "none";
  const char* precision = "bf16";
  std::int64_t heads = 4, kv_heads = 4;
  int tensor = 1;
  const char* schedule = "slimpipe";
  int sequences = 1;  // of a micro-batch
};

std::ostream& operator<<(std::ostream& out, const ContextCase& c) {
  return out << c.context << " context ranks, " << c.mode << ", " << c.devices << " devices, " << c.schedule
             << ", " << c.slices << " slices, " << c.policy << ", " << c.precision << ", " << c.heads
             << " and " << c.kv_heads << " heads, " << c.tensor << " tensor ranks, " << c.sequences
             << " sequences";
}

run::Run context_plan(const ContextCase& c) {
  run::Options options = small_options(c.schedule, c.devices, c.slices, c.precision);
  options.model.shape = {.layers = 4, .hidden = 128, .ffn = 352, .heads = c.heads, .kv_heads = c.kv_heads};
  options.data.seq_len = 1024;
  options.parallel.cp = c.context;
  options.parallel.cp_mode = c.mode;
  options.parallel.tp = c.tensor;
  options.memory.policy = c.policy;
  options.train.micro_batch = c.sequences;
  options.train.batch = 2 * c.sequences;
  options.train.loss_tile_tokens = 64;
  return planned(options);
}

TEST(ContextMemory, IsAsPredictedInEveryMode) {
  for (const char* mode : {"gather", "query", "heads"}) {
    expect_all_predicted<ContextCase>(context_plan,
                                      {{2, mode, 1, 4},
                                       {4, mode, 1, 4, "none", "f32"},
                                       {2, mode, 1, 1, "none", "bf16", 4, 2, 1, "1f1b"},
                                       {2, mode, 2, 4, "full", "bf16", 4, 2},
                                       {4, mode, 1, 2, "balanced", "f32", 4, 2, 1, "slimpipe", 2}});
  }
  expect_all_predicted<ContextCase>(context_plan,
                                    {{4, "mixed", 1, 4}, {4, "mixed", 1, 2, "full", "f32", 4, 1}});
}

// In whose records eight bytes a token would show.
TEST(ContextMemory, IsAsPredictedOfNarrowModels) {
  run::Options options = small_options("slimpipe", 1, 16, "bf16");
  options.model.shape = {.layers = 1, .hidden = 16, .ffn = 48, .heads = 2, .kv_heads = 2};
  options.data.seq_len = 2048;
  options.parallel.cp = 2;
  options.parallel.cp_mode = "query";
  options.memory.policy = "full";
  options.train.batch = 1;
  expect_predicted(planned(options));
}

// One head of a sequence is in order already, so that no kernel call takes a copy; LibTorch's kernel, which
// f64 has, copies a gradient of several.
TEST(ContextMemory, IsAsPredictedWhereAttentionIsMost) {
  for (const char* mode : {"gather", "query", "heads", "mixed"}) {
    for (const char* precision : {"f32", "f64", "bf16"}) {
      for (const int heads : {1, 2, 4}) {
        const bool shares = std::string_view(mode) == "heads" || std::string_view(mode) == "mixed";
        if (shares && heads == 1) continue;
        for (const int slices : {1, 2}) {
          SCOPED_TRACE(::testing::PrintToString(std::tuple(mode, precision, heads, slices)));
          run::Options options = small_options("terapipe", 1, slices, precision);
          options.model.shape = {.layers = 1, .hidden = 32, .ffn = 16, .heads = heads, .kv_heads = heads};
          options.model.shape.head_size = 64;
          options.data.seq_len = 1024;
          options.parallel.cp = std::string_view(mode) == "mixed" ? 4 : 2;
          options.parallel.cp_mode = mode;
          options.train.batch = options.train.micro_batch = heads == 1 ? slices : 1;
          expect_predicted(planned(options));
        }
      }
    }
  }
}

TEST(ContextMemory, IsAsPredictedWithASplitBackward) {
  for (const char* mode : {"gather", "query", "heads"})
    expect_all_predicted<ContextCase>(context_plan, {{2, mode, 2, 1, "none", "bf16", 4, 2, 1, "zb-v"}});
}

TEST(ContextMemory, IsAsPredictedTogetherWithTensorAndPipelineParallelism) {
  for (const char* mode : {"gather", "query", "heads"})
    expect_all_predicted<ContextCase>(context_plan, {{2, mode, 2, 4, "none", "bf16", 8, 4, 2}});
}

}  // namespace
}  // namespace penstock::testing
