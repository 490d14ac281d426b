// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/analytic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/error.h"
#include "model/memory/terms.h"
#include "model/parameters.h"
#include "sim/hardware_files.h"
#include "sim/lowering.h"

namespace penstock::sim {
namespace {

using schedule::OpKind;

constexpr OpKind kActions[] = {OpKind::Forward, OpKind::Backward, OpKind::BackwardInput,
                               OpKind::BackwardWeight};

schedule::Op op_of(OpKind kind, int stage = 0, int slice = 0) {
  return {.key = schedule::make_key(stage, 0, slice), .kind = kind};
}

// Two stages of two layers, three sequences of 1,024 tokens in n slices.
Work small_work(int n) {
  Work work;
  work.shape.layers = 4;
  work.mesh.pipeline = 2;
  work.layers = model::split_layers(4, 2);
  work.slices = {model::cut_into_slices(1024, n)};
  work.sequences = 3;
  return work;
}

AnalyticCosts assumed(const Work& work, const AnalyticOptions& options = {}) {
  return AnalyticCosts(work, assumed_hardware(), kPenstock, options);
}

Seconds whole_step(const AnalyticCosts& costs, int n, OpKind kind) {
  Seconds seconds = 0;
  for (int stage = 0; stage < 2; ++stage) {
    for (int i = 0; i < n; ++i) seconds += costs.seconds(0, 0, op_of(kind, stage, i));
  }
  return seconds;
}

double matrix_parameters(const model::Shape& shape) {
  return static_cast<double>(attention_parameters(shape) + expert_parameters(shape));
}

TEST(AnalyticCosts, SlicingMovesWorkButMakesNone) {
  const AnalyticCosts whole = assumed(small_work(1));
  for (const int n : {2, 3, 8}) {
    const AnalyticCosts sliced = assumed(small_work(n));
    for (const OpKind kind : kActions)
      EXPECT_NEAR(whole_step(sliced, n, kind) / whole_step(whole, 1, kind), 1, 1e-12);
    EXPECT_NEAR(whole_step(sliced, n, OpKind::BackwardInput) + whole_step(sliced, n, OpKind::BackwardWeight),
                whole_step(sliced, n, OpKind::Backward), 1e-12);
    EXPECT_GT(sliced.seconds(0, 0, op_of(OpKind::Forward, 0, 1)),
              sliced.seconds(0, 0, op_of(OpKind::Forward, 0, 0)));
  }
}

TEST(AnalyticCosts, WithoutAttentionTheFlopsAreTheModels) {
  const Work work = small_work(4);
  const AnalyticCosts costs = assumed(work, {.attention_factor = 0});
  const auto norms = static_cast<double>((2 * work.shape.layers + 1) * work.shape.hidden);
  const double expected = 3 * 1024 * (flops_per_token(work.shape, 0) - 6 * norms);
  const double flops =
      (whole_step(costs, 4, OpKind::Forward) + whole_step(costs, 4, OpKind::Backward)) * 1e11;
  EXPECT_NEAR(flops / expected, 1.0, 1e-12);
}

// 2 FLOPs a parameter and token at 100 GFLOP/s; 4·H·d FLOPs a pair of query and key at 50, 10 in the
// backward.
TEST(AnalyticCosts, OfTheAssumedMachineAreProductsAndAttentionAlone) {
  const Work work = small_work(4);
  const AnalyticCosts costs = assumed(work);
  for (int i = 0; i < 4; ++i) {
    const double products = 2 * 2 * matrix_parameters(work.shape) * 3 * 256 / 1e11;
    const double pairs = 3 * (256.0 * 256 * i + 256.0 * 256 / 2);
    const double attention = 2 * 4 * static_cast<double>(work.shape.query_width()) * pairs / 5e10;
    const double output = 6.0 * static_cast<double>(work.shape.vocab * work.shape.hidden) * 3 * 256 / 1e11;
    const auto seconds = [&](OpKind kind, int stage) { return costs.seconds(0, 0, op_of(kind, stage, i)); };
    EXPECT_NEAR(seconds(OpKind::Forward, 0), products + attention, 1e-15);
    EXPECT_NEAR(seconds(OpKind::Forward, 1), products + attention + output, 1e-15);
    EXPECT_NEAR(seconds(OpKind::Backward, 1), 2 * products + 2.5 * attention, 1e-15);
    EXPECT_NEAR(seconds(OpKind::BackwardInput, 0), products + 2.5 * attention, 1e-15);
    EXPECT_NEAR(seconds(OpKind::BackwardWeight, 0), products, 1e-15);
    const AttentionShare share = costs.attention(0, 0, op_of(OpKind::Backward, 0, i));
    EXPECT_NEAR(share.seconds, 2.5 * attention, 1e-15);
    EXPECT_EQ(share.layers, 2);
  }
  EXPECT_EQ(costs.seconds(0, 0, {.kind = OpKind::OptimizerStep}), 0);
  EXPECT_EQ(costs.seconds(0, 0, {.kind = OpKind::Offload, .bytes = 1'000'000}), 5e-4);
  const Transfer transfer =
      costs.transfer(0, 0, {.kind = OpKind::SendForward, .peer = 1, .bytes = 1'000'000});
  EXPECT_DOUBLE_EQ(transfer.occupied, 2e-4);
  EXPECT_EQ(transfer.latency, 0);
}

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

TEST(AnalyticCosts, WhatIsNotKeptIsFormedAgainInTheBackward) {
  using Tensor = model::SavedTensor;
  const model::KeepSet none = keep_of(model::Policy::None);
  const auto backward = [&](model::KeepSet keep) {
    Work work = small_work(1);
    work.keep.assign(4, keep);
    return assumed(work).seconds(0, 0, op_of(OpKind::Backward));
  };
  const Work work = small_work(1);
  const double tokens = 2 * 3 * 1024, h = static_cast<double>(work.shape.hidden);
  const auto q = static_cast<double>(work.shape.query_width()),
             k = static_cast<double>(work.shape.kv_width());
  const Seconds kept = backward(none);
  const auto more = [&](model::KeepSet keep) { return (backward(keep) - kept) * 1e11; };
  const auto near = [](double flops, double expected) { EXPECT_NEAR(flops / expected, 1, 1e-9); };
  near(more(none.without(Tensor::Query)), 2 * tokens * h * q);
  near(more(none.without(Tensor::KeyValue)), 2 * tokens * h * 2 * k);
  near(more(none.without(Tensor::NormTwoInput)), 2 * tokens * h * q);
  near(more(none.without(Tensor::GateUp)), 2 * tokens * h * 2 * static_cast<double>(work.shape.ffn));
  near(more(none.without(Tensor::AttentionOutput)), 2 * 3 * 4 * q * 1024 * 1024 / 2 * 2);
  EXPECT_NEAR(more(none.without(Tensor::NormOneOutput)), 0, 1e-3);
}

// As the trainer does (nn::lacks_key): a cached key is what its norm made.
TEST(AnalyticCosts, QueriesOfHeadsWithNormsAreFormedAgainWithTheirKeys) {
  Work work = small_work(4);
  work.shape.kv_heads = 2;
  work.shape.head_norms = true;
  const auto backward = [&](model::KeepSet keep) {
    work.keep.assign(4, keep);
    return assumed(work).seconds(0, 0, op_of(OpKind::Backward));
  };
  const model::KeepSet none = keep_of(model::Policy::None);
  const double flops = (backward(none.without(model::SavedTensor::Query)) - backward(none)) * 1e11;
  const auto columns = static_cast<double>(work.shape.query_width() + work.shape.kv_width());
  EXPECT_NEAR(flops / (2.0 * 2 * 3 * 256 * static_cast<double>(work.shape.hidden) * columns), 1, 1e-9);
}

TEST(AnalyticCosts, LayersThatKeepLessMakeTheirOwnStageSlower) {
  Work work = small_work(2);
  work.keep.assign(4, keep_of(model::Policy::None));
  work.keep[3] = keep_of(model::Policy::Balanced).without(model::SavedTensor::GateUp);
  const AnalyticCosts costs = assumed(work);
  EXPECT_GT(costs.seconds(0, 0, op_of(OpKind::Backward, 1)), costs.seconds(0, 0, op_of(OpKind::Backward, 0)));
}

TEST(AnalyticCosts, AVisitMovesTheRowsOfAllTensorRanksOfTheLastStage) {
  const auto visit_bytes = [](int tensor) {
    Work work = small_work(4);
    work.vocabulary_parallel = true;
    work.mesh.tensor = tensor;
    return lowering_of(std::make_shared<const RunBytes>(work)).vocabulary.visit_bytes(0, 0);
  };
  EXPECT_EQ(visit_bytes(2), visit_bytes(1));
}

TEST(AnalyticCosts, VisitsShareTheOutputLayerOverThePipeline) {
  Work work = small_work(4);
  const Seconds whole = assumed(work).seconds(0, 0, op_of(OpKind::Forward, 1)) -
                        assumed(work).seconds(0, 0, op_of(OpKind::Forward, 0));
  work.vocabulary_parallel = true;
  const AnalyticCosts costs = assumed(work);
  schedule::Op visit = op_of(OpKind::VocabularyLoss, 1);
  EXPECT_NEAR(costs.seconds(0, 0, visit), whole / 2, 1e-15);
  visit.bytes = 5'000'000;
  EXPECT_NEAR(costs.seconds(0, 0, visit), whole / 2 + 1e-3, 1e-15);
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

TEST(AnalyticCosts, MovedAttentionOfUnequalSlicesIsTheShareOfItsKeys) {
  Work work = small_work(3);
  work.slices.front() = {{0, 512}, {512, 384}, {896, 128}};
  schedule::Exchange exchange;
  exchange.of = schedule::forward(0, 0, 2);
  exchange.first_half = 1;
  exchange.halves = 2;
  const double share = (256 + 192) / (896 + 64.0);
  EXPECT_NEAR(assumed(work).share_of_attention(exchange), share, 1e-12);
  work.documents = {model::Documents(3, {1024})};
  EXPECT_NEAR(assumed(work).share_of_attention(exchange), share, 1e-3) << "with the diagonal's pairs";
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
  work.passing = {{1, 1}, {1, 1}};
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

TEST(AnalyticCosts, AMachineWithoutTheRateOfThePrecisionIsRefused) {
  Work work = small_work(1);
  Hardware hardware = read_hardware("h800");
  hardware.device.f32_tflops = 0;
  work.precision = model::Precision::F32;
  try {
    AnalyticCosts{work, hardware};
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("device.f32_tflops is missing"), std::string::npos);
  }
  EXPECT_THROW(assumed(small_work(1), {.attention_factor = -1}), InputError);
}

TEST(AnalyticCosts, AttentionMeasuredInAnotherPrecisionIsNoQuickerThanTheProductsOfTheRuns) {
  Work work = small_work(1);
  Hardware hardware = read_hardware("this-machine");
  const auto attention = [&](model::Precision precision, double f32_tflops) {
    work.precision = precision;
    hardware.device.f32_tflops = f32_tflops;
    return AnalyticCosts(work, hardware).attention(0, 0, op_of(OpKind::Backward)).seconds;
  };
  const double flops = 2.5 * 2 * 4 * static_cast<double>(work.shape.query_width()) * 3 * 1024 * 1024 / 2;
  EXPECT_NEAR(attention(model::Precision::F32, 0.01) * 1e10 / flops, 1, 1e-9);
  const Seconds measured = attention(model::Precision::BF16, 0.01);
  EXPECT_EQ(attention(model::Precision::F32, 100), measured);
  EXPECT_LT(measured, flops / 1e10);
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

TEST(AssumedSpeeds, AreThoseThatTheFileLacksAndNoTableReplaces) {
  Hardware hardware = read_hardware("h800");
  const auto names = [&](const Words& given, std::string_view wanted) {
    const Words assumed = assumed_speeds(hardware, given);
    return std::ranges::find(assumed, wanted) != assumed.end();
  };
  hardware.efficiency.matrix = 0.8;
  EXPECT_TRUE(names({}, "efficiency.matrix = 0.8"));
  EXPECT_FALSE(names({"efficiency.matrix"}, "efficiency.matrix = 0.8"));
  hardware.measured.matrix_tflops = {1};
  EXPECT_FALSE(names({}, "efficiency.matrix = 0.8"));
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
