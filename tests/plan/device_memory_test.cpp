// SPDX-License-Identifier: Apache-2.0
#include "plan/device_memory.h"

#include <gtest/gtest.h>

namespace penstock::plan {
namespace {

Workload llama(Tokens seq_len) {
  Workload workload{.seq_len = seq_len};
  workload.model.shape = {
      .layers = 32, .hidden = 4096, .ffn = 11008, .heads = 32, .kv_heads = 8, .vocab = 32000};
  return workload;
}

Layout layout_of(model::Policy policy, int slices = 1) { return {.slices = slices, .keep = keep_of(policy)}; }

TEST(DeviceMemory, StatesOfOneDeviceAddUpToSixteenBytesAParameterAndNothingIsLostBySpreading) {
  const Workload workload = llama(4096);
  Layout layout = layout_of(model::Policy::None);
  const DeviceLoad load{.layers = 32, .embeddings = 2, .last = true, .records = 1};
  const model::MemoryPeaks one = device_memory(workload, layout, load);
  const model::Shape& shape = workload.model.shape;
  const Bytes rotation = 4096 * shape.head_dim() * 4;  // sines and cosines
  EXPECT_EQ(one.weights + one.gradients + one.optimizer,
            18 * (total_parameters(shape) - shape.hidden) + rotation);
  layout.mesh.data = 4;
  const model::MemoryPeaks sharded = device_memory(workload, layout, load);
  EXPECT_EQ(4 * sharded.optimizer, one.optimizer);
  EXPECT_EQ(sharded.weights, one.weights);
  EXPECT_EQ(model::largest_category(one).first, "optimizer");
}

TEST(DeviceMemory, AnMlpWithGeluHasTwoMatricesAndKeepsOneInput) {
  const Workload swiglu = llama(4096);
  Workload gelu = swiglu;
  gelu.model.family = Family::Gpt;
  const Layout layout = layout_of(model::Policy::None);
  EXPECT_EQ(
      parameters_on_device(swiglu, layout, 32, 0).total() - parameters_on_device(gelu, layout, 32, 0).total(),
      32.0 * 4096 * 11008);
  EXPECT_EQ(record_size(swiglu, layout, 1).leaving - record_size(gelu, layout, 1).leaving,
            2.0 * 4096 * 11008);
  EXPECT_LT(temporary_bytes(gelu, layout), temporary_bytes(swiglu, layout));
  const Workload gpt{.model = find_model("gpt-175b"), .seq_len = 2048};
  EXPECT_NEAR(parameters_on_device(gpt, layout, 96, 1).total(), 174.6e9, 0.1e9);
}

TEST(DeviceMemory, OfContextRanksThatExchangeHeadsHasTheKeysOfAWholeHead) {
  Workload workload = llama(32768);
  Layout layout = layout_of(model::Policy::Full, 8);
  layout.mesh.tensor = 4;
  layout.mesh.context = 8;  // 8 query heads of a tensor rank
  const auto staying = [&](std::int64_t key_heads) {
    workload.model.shape.kv_heads = key_heads;
    return record_size(workload, layout, 1).staying;
  };
  EXPECT_DOUBLE_EQ(staying(8), staying(32)) << "each of 2 key heads on 4 of the ranks";
  const double numbers = 2 * 128 * (32768 / 8);  // of the tokens of a slice
  EXPECT_DOUBLE_EQ(staying(32), 2 * numbers) << "bytes of bf16";
}

TEST(DeviceMemory, OfMoreTensorRanksThanKeyHeadsHasAWholeHeadOnEach) {
  Workload workload = llama(32768);
  for (const int slices : {1, 8}) {
    Layout layout = layout_of(model::Policy::None, slices);
    layout.mesh.tensor = 8;
    const auto memory = [&](std::int64_t key_heads) {
      workload.model.shape.kv_heads = key_heads;
      return device_memory(workload, layout,
                           {.layers = 4, .records = 2, .weight_records = 1, .kv_gradients = 1});
    };
    EXPECT_EQ(memory(2), memory(8)) << slices;
    EXPECT_LT(memory(8).activations, memory(16).activations) << slices;
  }
}

TEST(DeviceMemory, ExpertsHaveNoMoreStatesThanADeviceHolds) {
  Layout layout{.mesh = {.expert = 8, .data = 8}};
  const model::LocalParameters held{.dense = 80, .expert = 10, .expert_replicas = 1};
  EXPECT_EQ(stepped_parameters(layout, held), 10 + 10);
  layout.sharded.group = 4;
  EXPECT_EQ(stepped_parameters(layout, held), 20 + 10);
  layout.sharded.group = 1;
  EXPECT_EQ(stepped_parameters(layout, held), 80 + 10);
}

TEST(DeviceMemory, IsALineInTheOffloadedShareAndWhatLeavesIsOnTheHost) {
  const Workload workload = llama(32768);
  for (const int slices : {1, 8}) {
    Layout layout = layout_of(model::Policy::None, slices);
    const DeviceLoad load{.layers = 8, .embeddings = 1, .records = 20};
    const model::MemoryPeaks none = device_memory(workload, layout, load);
    for (const double ratio : {0.25, 0.5, 1.0}) {
      layout.offload = ratio;
      const model::MemoryPeaks some = device_memory(workload, layout, load);
      const double leaving = ratio * record_size(workload, layout, 8).leaving;
      EXPECT_NEAR(some.total(), none.total() - 16 * leaving, 4) << "all but four of 20 records";
      EXPECT_NEAR(some.host, 20 * leaving, 2) << "those that are copied are on both sides";
    }
  }
}

TEST(DeviceMemory, KeysAndValuesOfSlicesStayAtHome) {
  const Workload workload = llama(32768);
  const RecordSize sliced = record_size(workload, layout_of(model::Policy::Full, 8), 1);
  const RecordSize whole = record_size(workload, layout_of(model::Policy::Full), 1);
  EXPECT_DOUBLE_EQ(sliced.leaving * 8, whole.leaving);
  EXPECT_DOUBLE_EQ(sliced.staying * 8 - whole.staying, 32768.0 * 4 * workload.model.shape.kv_width());
}

}  // namespace
}  // namespace penstock::plan
