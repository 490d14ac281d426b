// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/engine.h"

#include <gtest/gtest.h>

#include "sim/costs/layer_cost.h"
#include "sim/hardware_files.h"

namespace penstock::sim {
namespace {

LayerCost layer(const Hardware& hardware, const Engine& engine, std::int64_t experts = 1,
                int expert_ranks = 1) {
  model::Shape shape;
  shape.experts = experts;
  shape.experts_per_token = experts > 1 ? 2 : 1;
  mesh::Mesh mesh;
  mesh.data = mesh.expert = expert_ranks;
  LayerSlice slice{.shape = shape, .mesh = mesh};
  slice.tokens = slice.own = slice.sequence = 4096;
  return layer_cost(slice, hardware, engine);
}

TEST(Engine, LaunchesExpertsOneAfterAnotherWhereTheyAreNotGrouped) {
  Hardware hardware = assumed_hardware();
  hardware.kernels.gap_us = 10;
  Engine grouped, looped;
  looped.grouped_experts = false;
  const auto further = [&](std::int64_t experts, int expert_ranks) {
    const LayerCost less = layer(hardware, grouped, experts, expert_ranks);
    const LayerCost more = layer(hardware, looped, experts, expert_ranks);
    EXPECT_NEAR(more.backward.gaps - less.backward.gaps, 2 * (more.forward.gaps - less.forward.gaps), 1e-12);
    EXPECT_DOUBLE_EQ(more.forward.matrix, less.forward.matrix);
    return more.forward.gaps - less.forward.gaps;
  };
  EXPECT_EQ(further(1, 1), 0) << "a dense model has none";
  EXPECT_NEAR(further(8, 1), 3 * 7 * 10e-6, 1e-12);
  EXPECT_NEAR(further(8, 4), 3 * 1 * 10e-6, 1e-12);
  EXPECT_EQ(further(8, 8), 0) << "one expert a rank";
}

TEST(Engine, OurOwnLaunchesEachExpertsProductsAndPassesOverTheirRows) {
  Hardware hardware = assumed_hardware();
  hardware.kernels.gap_us = 10;
  hardware.device.memory_gbps = 1000;
  Engine grouped = kPenstock;
  grouped.grouped_experts = true;
  grouped.routing_passes = grouped.reorder_passes = 0;
  const auto passes = [&](int expert_ranks) {
    const LayerTerms own = layer(hardware, kPenstock, 8, expert_ranks).forward,
                     less = layer(hardware, grouped, 8, expert_ranks).forward;
    EXPECT_NEAR(own.gaps - less.gaps, 3 * (8 / expert_ranks - 1) * 10e-6, 1e-12);
    const double pass = 2 * 2.0 * as_double(model::Shape{}.hidden) * 4096;  // bytes, two experts a token
    return (own.elementwise - less.elementwise) * hardware.memory_rate() / pass;
  };
  EXPECT_NEAR(passes(1), 3.5, 1e-9) << "gathered, and added up";
  EXPECT_NEAR(passes(4), 7.5, 1e-9) << "put in order there and for the way back";
}

TEST(Engine, NoRankHasMoreRowsThanARoutingCanSendIt) {
  model::Shape shape;
  shape.experts = 8;
  shape.experts_per_token = 4;
  const auto seconds = [&](int expert_ranks, double load) {
    mesh::Mesh mesh;
    mesh.data = mesh.expert = expert_ranks;
    LayerSlice slice{.shape = shape, .mesh = mesh};
    slice.tokens = slice.own = slice.sequence = 4096;
    slice.expert_load = load;
    return layer_cost(slice, assumed_hardware(), kPenstock).forward.total();
  };
  EXPECT_DOUBLE_EQ(seconds(1, 1), seconds(1, 2));
  EXPECT_LT(seconds(8, 1.9), seconds(8, 2));
  EXPECT_DOUBLE_EQ(seconds(8, 2), seconds(8, 8)) << "an expert has each token once";
  EXPECT_DOUBLE_EQ(seconds(2, 2), seconds(2, 3)) << "one rank has all rows";
}

TEST(Engine, FormsElementwiseWorkAgainAsTheForwardDoesIt) {
  const Hardware bf16 = read_hardware("h800");
  Hardware f32 = bf16, measured = bf16;
  f32.device.peak = "f32";
  measured.measured.elementwise_mb = {1};
  measured.measured.elementwise_gbps = {bf16.memory_rate() / 2e9};
  const auto again = [](const Hardware& hardware, bool fused) {
    Engine engine;
    engine.fused = fused;
    return layer(hardware, engine).recompute.elementwise;
  };
  const Seconds fused = again(bf16, true);
  EXPECT_NEAR(again(f32, true) / fused, 2, 1e-9) << "twice the bytes";
  EXPECT_NEAR(again(measured, true) / fused, 2, 1e-9) << "half the rate";
  const double silu = 2 * 2.0 * as_double(model::Shape{}.ffn) * 4096;  // bytes, read and written
  EXPECT_NEAR((again(bf16, false) - fused) * bf16.memory_rate() / silu, 1, 1e-9);
}

TEST(Engine, MovesHiddenStatesInThePrecisionsNumbers) {
  Hardware bf16 = read_hardware("h800");
  bf16.node.link_latency_us = 0;
  Hardware f32 = bf16;
  f32.device.peak = "f32";
  model::Shape shape;
  const mesh::Mesh mesh{.tensor = 2};
  LayerSlice slice{.shape = shape, .mesh = mesh};
  slice.tokens = 4096;
  EXPECT_NEAR(hidden_pass(slice, f32, Engine{}) / hidden_pass(slice, bf16, Engine{}), 2, 1e-9);
  EXPECT_NEAR(embedding(slice, f32, Engine{}) / embedding(slice, bf16, Engine{}), 2, 1e-9);
}

// swiglu_backward() of the trainer has gate and up at hand.
TEST(Engine, OurOwnWritesAProductThatIsNotKeptInTheBackwardOfSwiglu) {
  const Hardware hardware = read_hardware("h800");
  model::Shape shape;
  const mesh::Mesh mesh;
  const auto again = [&](const Engine& engine, model::KeepSet keep) {
    LayerSlice slice{.shape = shape, .mesh = mesh, .keep = keep};
    slice.tokens = slice.own = slice.sequence = 4096;
    return layer_cost(slice, hardware, engine).recompute.elementwise;
  };
  const model::KeepSet all = keep_of(model::Policy::None), dropped = all.without(model::SavedTensor::Product);
  const auto passes = [&](const Engine& engine) {
    const double pass = 2.0 * as_double(shape.ffn) * 4096;
    return (again(engine, dropped) - again(engine, all)) * hardware.memory_rate() / pass;
  };
  EXPECT_NEAR(passes(kPenstock), 1, 1e-9);
  EXPECT_NEAR(passes(Engine{.fused = true}), 3, 1e-9) << "a kernel of its own";
}

// EmbeddingShards of the trainer: a scatter of rows, and a gather of their gradients.
TEST(Engine, OurOwnSendsTheRowsOfTheEmbeddingAndTheirGradients) {
  const Hardware hardware = read_hardware("h800");
  model::Shape shape;
  const auto passes = [&](const Engine& engine) {
    const mesh::Mesh alone, pair{.tensor = 2};
    LayerSlice slice{.shape = shape, .mesh = pair}, whole{.shape = shape, .mesh = alone};
    slice.tokens = whole.tokens = 4096;
    return (embedding(slice, hardware, engine) - embedding(whole, hardware, engine)) /
           hidden_pass(slice, hardware, engine);
  };
  EXPECT_NEAR(passes(kPenstock), 2, 1e-9);
  EXPECT_NEAR(passes(Engine{}), 1, 1e-9);
}

TEST(Engine, MoreTensorRanksThanKeyHeadsComputeAWholeHeadEach) {
  const Hardware hardware = read_hardware("h800");
  const mesh::Mesh mesh{.tensor = 8};
  const auto seconds = [&](std::int64_t key_heads) {
    model::Shape shape;
    shape.heads = 16;
    shape.kv_heads = key_heads;
    LayerSlice slice{.shape = shape, .mesh = mesh};
    slice.tokens = slice.own = slice.sequence = 4096;
    const LayerCost cost = layer_cost(slice, hardware, kPenstock);
    return cost.forward.total() + cost.backward.total() + cost.recompute.total();
  };
  EXPECT_DOUBLE_EQ(seconds(2), seconds(8));
  EXPECT_LT(seconds(8), seconds(16));
}

TEST(Engine, AttentionsGenerationPicksTheRate) {
  Hardware hardware = assumed_hardware();
  hardware.measured = {};
  hardware.efficiency.attention = 0.4;
  const auto seconds = [&](const char* kernels) {
    Engine engine;
    engine.attention = kernels;
    return layer(hardware, engine).forward.attention;
  };
  EXPECT_DOUBLE_EQ(seconds("fa3"), seconds("fa2")) << "nothing is known of it";
  hardware.efficiency.attention_cudnn = 0.8;
  EXPECT_NEAR(seconds("cudnn") / seconds("fa2"), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(seconds("fa3"), seconds("cudnn")) << "published rates of the two are alike";
  hardware.efficiency.attention_fa3 = 0.6;
  EXPECT_NEAR(seconds("fa3") / seconds("fa2"), 0.4 / 0.6, 1e-12);
}

}  // namespace
}  // namespace penstock::sim
