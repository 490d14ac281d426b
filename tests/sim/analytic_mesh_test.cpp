// SPDX-License-Identifier: Apache-2.0
// Costs of ranks that share a step.
#include "sim/costs/analytic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "model/memory/terms.h"
#include "model/parameters.h"
#include "sim/costs/collectives.h"
#include "sim/hardware_files.h"
#include "sim/lowering.h"
#include "sim/small_work.h"

namespace penstock::sim {
namespace {

using schedule::OpKind;

// As RanksSendTheBytesOfTheirFormula (tests/train/tensor_test.cpp) has them of the trainer: F 4, B 6, I 4 and
// W 4; recomputed attention 1 more, and an I gathers what recomputation needs.
TEST(LayerCost, GathersAndScattersAsOftenAsTheTrainer) {
  const Work work = small_work(1);
  const mesh::Mesh mesh{.tensor = 2};
  const Hardware hardware = assumed_hardware();
  const auto expect = [&](model::Policy policy, double backward, double split) {
    const LayerSlice slice{.shape = work.shape,
                           .mesh = mesh,
                           .keep = keep_of(policy),
                           .tokens = 1024,
                           .own = 1024,
                           .sequence = 1024};
    const LayerCost cost = layer_cost(slice, hardware, kPenstock);
    const Seconds pass = hidden_pass(slice, hardware, kPenstock);
    EXPECT_NEAR(cost.forward.tensor / pass, 4, 1e-9);
    EXPECT_NEAR((cost.backward.tensor + cost.recompute.tensor) / pass, backward, 1e-9);
    EXPECT_NEAR(cost.split / pass, split, 1e-9);
  };
  expect(model::Policy::None, 6, 4 + 4 - 6);
  expect(model::Policy::Balanced, 6, 4 + 4 - 6);
  expect(model::Policy::BalancedFc1, 6, 5 + 4 - 6);
  expect(model::Policy::Full, 7, 7 + 4 - 7);
}

// TensorGroup::scatter of the trainer: two of a layer's four passes each way, and a recomputed one.
TEST(AnalyticCosts, RanksOfSeveralTensorShardsScatterInF32) {
  Hardware hardware = read_hardware("h800");
  hardware.node.link_latency_us = 0;
  hardware.kernels.gap_us = hardware.efficiency.matrix_traffic = 0;  // of more, smaller products
  const auto more_passes = [&](model::Precision precision, model::Policy policy, OpKind kind) {
    Work work = small_work(1);
    work.mesh.tensor = 2;
    work.precision = precision;
    work.keep.assign(4, keep_of(policy));
    const AnalyticCosts alone(work, hardware);
    work.tensor_shards = 8;
    const double hidden = 3.0 * 1024 * as_double(work.shape.hidden) * as_double(element_size(precision));
    return (AnalyticCosts(work, hardware).seconds(0, 0, op_of(kind)) - alone.seconds(0, 0, op_of(kind))) /
           alone.collective(mesh::Group::Tensor, hidden) / 2;  // of a layer
  };
  using model::Policy, model::Precision;
  EXPECT_NEAR(more_passes(Precision::BF16, Policy::None, OpKind::Forward), 2, 1e-9);
  EXPECT_NEAR(more_passes(Precision::BF16, Policy::None, OpKind::Backward), 2, 1e-9);
  EXPECT_NEAR(more_passes(Precision::BF16, Policy::Full, OpKind::Backward), 3, 1e-9);
  EXPECT_NEAR(more_passes(Precision::BF16, Policy::Full, OpKind::BackwardWeight), 0, 1e-9);
  EXPECT_NEAR(more_passes(Precision::F32, Policy::Full, OpKind::Backward), 0, 1e-9);
}

// The products of a rank's logical shards are formed one by one, and keys for each.
TEST(AnalyticCosts, RanksOfSeveralTensorShardsFormNarrowerProducts) {
  Hardware hardware = read_hardware("h800");
  hardware.efficiency.matrix_traffic = 0;
  const auto forward = [&](int shards, double gap_us) {
    Work work = small_work(1);
    work.shape.heads = 8;
    work.shape.kv_heads = 2;
    work.tensor_shards = shards;
    hardware.kernels.gap_us = gap_us;
    return AnalyticCosts(work, hardware).seconds(0, 0, op_of(OpKind::Forward));
  };
  const Seconds whole = forward(1, 0), gaps = forward(1, 10) - whole;
  EXPECT_NEAR(forward(2, 0), whole, 1e-12) << "as many keys";
  EXPECT_NEAR(forward(2, 10) - whole, 2 * gaps, 1e-12);
  EXPECT_GT(forward(8, 0), 1.01 * whole) << "four times the keys";
}

// A column's hidden states twice, and their gradients in f32; within a stage, where traffic is quick, all
// rows.
TEST(AnalyticCosts, AVisitMovesTheRowsOfEachColumnBetweenStages) {
  for (const int tensor : {1, 2, 4}) {
    Work work = small_work(4);
    work.precision = model::Precision::BF16;
    work.vocabulary_parallel = true;
    work.mesh.tensor = tensor;
    const Bytes hidden = 256 * 3 * work.shape.hidden * 2;
    const auto bytes = std::make_shared<const RunBytes>(work);
    EXPECT_EQ(lowering_of(bytes).vocabulary.visit_bytes(0, 0), 4 * hidden / tensor);
    const Hardware hardware = assumed_hardware();
    const double own = as_double(hidden) / tensor, others = as_double(hidden) - own;
    EXPECT_NEAR(visit_messages(hardware, work.mesh, own, work.precision), (4 * own + 3 * others) / 5e9,
                1e-12);
  }
}

TEST(AnalyticCosts, VisitsShareTheOutputLayerOverThePipeline) {
  Work work = small_work(4);
  const Seconds whole = assumed(work).seconds(0, 0, op_of(OpKind::Forward, 1)) -
                        assumed(work).seconds(0, 0, op_of(OpKind::Forward, 0));
  work.vocabulary_parallel = true;
  const AnalyticCosts costs = assumed(work);
  const Seconds messages = visit_messages(assumed_hardware(), work.mesh,
                                          as_double(costs.bytes().hidden_bytes(0, 0)), work.precision);
  EXPECT_GT(messages, 0);
  EXPECT_NEAR(costs.seconds(0, 0, op_of(OpKind::VocabularyLoss, 1)), whole / 2 + messages, 1e-15);
  EXPECT_EQ(costs.seconds(0, 0, op_of(OpKind::Forward, 1)), costs.seconds(0, 0, op_of(OpKind::Forward, 0)));
}

TEST(AnalyticCosts, TensorAndContextShareOutProductsAttentionAndBytesAndAddTraffic) {
  Work work = small_work(4);
  const AnalyticCosts one = assumed(work);
  work.mesh = {.tensor = 2, .context = 2, .pipeline = 2};
  Hardware free = assumed_hardware();
  free.node.link_gbps = free.network.gbps_per_gpu = 1e30;
  const AnalyticCosts shared(work, free), slow = assumed(work);
  for (const OpKind kind : kActions) {
    const schedule::Op op = op_of(kind, 0, 3);
    EXPECT_NEAR(shared.seconds(0, 0, op), one.seconds(0, 0, op) / 4, 1e-12);
    EXPECT_GT(slow.seconds(0, 0, op), shared.seconds(0, 0, op)) << "W gathers the inputs of its products";
  }
  EXPECT_EQ(4 * slow.record({1, 0, 0}).record, one.record({1, 0, 0}).record);
  EXPECT_EQ(4 * slow.record({0, 0, 0}).kv_gradient, one.record({0, 0, 0}).kv_gradient);
  EXPECT_EQ(4 * slow.bytes().hidden_bytes(0, 0), one.bytes().hidden_bytes(0, 0));
  EXPECT_EQ(4 * slow.bytes().leavable({0, 0, 0}), one.bytes().leavable({0, 0, 0}));
}

TEST(AnalyticCosts, ExpertsCostTheRowsThatVisitThemAndTheirTraffic) {
  Work work = small_work(1);
  const Seconds dense = assumed(work).seconds(0, 0, op_of(OpKind::Forward));
  work.shape.experts = 8;
  work.shape.experts_per_token = 2;
  const double mlp = 2 * 2 * static_cast<double>(expert_parameters(work.shape)) * 3 * 1024 / 1e11;
  EXPECT_NEAR(assumed(work).seconds(0, 0, op_of(OpKind::Forward)), dense + mlp, 1e-12);
  const Bytes record = RunBytes(work).record({0, 0, 0}).record;
  Work alone = small_work(1);
  const Bytes dispatched = 2 * work.shape.hidden * 2, routing = (8 + 1 + 2 * 2) * 4 + 2 * 3 * 8;
  EXPECT_EQ(record - RunBytes(alone).record({0, 0, 0}).record,
            2 * 3 * 1024 * (3 * work.shape.ffn * 2 + dispatched + routing));
  work.mesh = {.expert = 4, .data = 4, .pipeline = 2};
  EXPECT_GT(assumed(work).seconds(0, 0, op_of(OpKind::Forward)), dense + mlp);
}

// Where ranks share the weights too, a device has the gradients of its share alone.
TEST(AnalyticCosts, AStepOverSharedWeightsPassesOverAShareOfThem) {
  Work work = small_work(1);
  work.mesh.data = 4;
  const Hardware hardware = read_hardware("this-machine");
  const auto bytes = [&] {
    return AnalyticCosts(work, hardware).seconds(0, 0, {.kind = OpKind::OptimizerStep}) *
           hardware.measured.optimizer_gbps * 1e9;
  };
  const Engine& engine = kPenstock;
  const double states = bytes();
  work.sharded_weights = {{1, 1}, {1, 1}};
  const double shared = bytes();
  EXPECT_NEAR(states / shared,
              (engine.gradient_passes + engine.optimizer_bytes / 4) /
                  ((engine.gradient_passes + engine.optimizer_bytes) / 4),
              1e-9);
}

// DualPipe: device_of_stage knows one of a stage's devices.
TEST(AnalyticCosts, AStepOfADeviceHasTheParametersOfAllStagesItHolds) {
  Work work = small_work(1);
  const auto step = [&](int device) {
    return AnalyticCosts(work, read_hardware("h800")).seconds(device, 0, {.kind = OpKind::OptimizerStep});
  };
  const Seconds fixed = 1e-3 * read_hardware("h800").kernels.step_ms;
  const Seconds first = step(0) - fixed, last = step(1) - fixed;
  work.devices = {0, 0};
  work.held = {{0, 1}, {0, 1}};
  for (int device = 0; device < 2; ++device)
    EXPECT_NEAR((step(device) - fixed) / (first + last), 1, 1e-9) << device;
}

TEST(AnalyticCosts, TransfersBetweenNodesAreSlowerThanInsideOne) {
  Work work = small_work(1);
  work.layers = model::split_layers(4, 4);
  work.mesh = {.tensor = 4, .pipeline = 4};
  const AnalyticCosts costs(work, read_hardware("h800"));
  const auto seconds = [&](int from, int to) {
    return costs.transfer(from, 0, {.kind = OpKind::SendForward, .peer = to, .bytes = 100'000'000}).occupied;
  };
  EXPECT_GT(seconds(1, 2), 2 * seconds(0, 1));
  EXPECT_EQ(seconds(0, 1), seconds(2, 3));
}

TEST(AnalyticCosts, TheSlowestNodeHoldsUpEverythingButTheFixedTime) {
  Work work = small_work(1);
  work.mesh = {.data = 16, .pipeline = 2};  // four nodes
  Hardware hardware = read_hardware("h800");
  const AnalyticCosts even(work, hardware);
  hardware.network.straggle = 0.05;
  const AnalyticCosts uneven(work, hardware);
  const auto ratio = [&](const schedule::Op& op, Seconds fixed = 0) {
    return (uneven.seconds(0, 0, op) - fixed) / (even.seconds(0, 0, op) - fixed);
  };
  EXPECT_NEAR(ratio(op_of(OpKind::Forward)), 1.1, 1e-9);
  EXPECT_NEAR(ratio({.kind = OpKind::OptimizerStep}, 1e-3 * hardware.kernels.step_ms), 1.1, 1e-9);
  const schedule::Op send{.kind = OpKind::SendForward, .peer = 1, .bytes = 1'000'000};
  EXPECT_NEAR(uneven.transfer(0, 0, send).occupied / even.transfer(0, 0, send).occupied, 1.1, 1e-9);
}

TEST(AnalyticCosts, ACollectiveTakesAPassOverItsGroupOnTheNetworkWhereItCrossesNodes) {
  Work work = small_work(1);
  work.mesh = {.tensor = 4, .data = 4, .pipeline = 2};
  const Hardware hardware = read_hardware("h800");
  const AnalyticCosts costs(work, hardware);
  const auto bytes_a_second = [&](mesh::Group group, int members) {
    return 1e12 * (members - 1) / members / costs.collective(group, 1e12);
  };
  EXPECT_NEAR(bytes_a_second(mesh::Group::Tensor, 4) / hardware.link_rate(), 1, 1e-3);
  const double share = 2 * hardware.network.gbps_per_gpu * 1e9 * hardware.network.gradient_efficiency *
                       hardware.network.pair_efficiency;
  EXPECT_NEAR(bytes_a_second(mesh::Group::Replica, 4) / share, 1, 1e-3) << "two members on each node";
  EXPECT_GT(costs.seconds(0, 0, {.kind = OpKind::ReduceGradients, .peer = 1, .bytes = 1'000'000}), 0);
}

// The eight data ranks of a context rank share the states: each of them is on a node of its own.
TEST(AnalyticCosts, AShardGroupSpansTheNodesThatTheRunsDoes) {
  Work work = small_work(1);
  work.layers = model::split_layers(4, 1);
  work.mesh = {.context = 8, .data = 8};
  work.shard_group = 8;
  const Hardware hardware = read_hardware("h800");
  schedule::Op gather = op_of(OpKind::GatherWeights);
  gather.group = mesh::Group::Replica;
  gather.bytes = 1'000'000'000'000;
  const double rate = hardware.network.gbps_per_gpu * 1e9 * hardware.network.gradient_efficiency;
  EXPECT_NEAR(1e12 * 7 / 8 / AnalyticCosts(work, hardware).seconds(0, 0, gather) / rate, 1, 1e-3);
}

TEST(AnalyticCosts, OfEveryHardwareFileAreFiniteOnAHybridMesh) {
  for (const char* name : {"a100", "a100-vtrain", "a800", "h100", "h200", "h800", "this-machine"}) {
    Work work = small_work(4);
    work.shape.experts = 4;
    work.shape.experts_per_token = 2;
    work.mesh = {.tensor = 4, .context = 2, .expert = 2, .data = 2, .pipeline = 2};
    const AnalyticCosts costs(work, read_hardware(name));
    for (const OpKind kind : kActions) {
      const Seconds seconds = costs.seconds(0, 0, op_of(kind, 1, 3));
      EXPECT_TRUE(std::isfinite(seconds) && seconds > 0) << name;
    }
    const Seconds forward = costs.seconds(0, 0, op_of(OpKind::Forward, 0, 3));
    EXPECT_GT(costs.seconds(0, 0, op_of(OpKind::Backward, 0, 3)), forward) << name;
    EXPECT_GT(costs.seconds(0, 0, {.kind = OpKind::OptimizerStep}), 0) << name;
  }
}

TEST(AnalyticCosts, ExpertsAreSummedOverTheRanksThatHaveTheSame) {
  Work work = small_work(1);
  work.shape.experts = 4;
  const auto reduction = [&](const mesh::Mesh& mesh) {
    work.mesh = mesh;
    schedule::Op op = op_of(OpKind::ReduceGradients);
    op.group = mesh::Group::Replica;
    op.bytes = 1'000'000'000;
    return assumed(work).seconds(0, 0, op);
  };
  const auto part_of_experts = [&](const mesh::Mesh& mesh) {
    const model::LocalParameters held = model::held_parameters(work.shape, mesh, 2, 1);
    return held.expert / held.total();
  };
  const double link = assumed_hardware().link_rate();
  const mesh::Mesh apart{.expert = 2, .data = 2, .pipeline = 2};  // one replica of each expert
  EXPECT_NEAR(reduction(apart), 1e9 * (1 - part_of_experts(apart)) / 2 / link, 1e-5);
  const mesh::Mesh alike{.data = 2, .pipeline = 2};
  EXPECT_NEAR(reduction(alike), 1e9 / 2 / link, 1e-5);
  const mesh::Mesh tensor{.tensor = 2, .pipeline = 2};  // one replica of the dense weights
  EXPECT_NEAR(reduction(tensor), 1e9 * part_of_experts(tensor) / 2 / link, 1e-5);
}

}  // namespace
}  // namespace penstock::sim
