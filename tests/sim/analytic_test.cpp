// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/analytic.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/memory/terms.h"
#include "model/parameters.h"
#include "sim/hardware_files.h"
#include "sim/lowering.h"
#include "sim/small_work.h"

namespace penstock::sim {
namespace {

using schedule::OpKind;

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

}  // namespace
}  // namespace penstock::sim
