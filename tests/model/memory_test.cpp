// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/memory/policy.h"
#include "model/memory/terms.h"

namespace penstock::model {
namespace {

Shape mixtral() {
  return {.layers = 32,
          .hidden = 4096,
          .ffn = 14336,
          .heads = 32,
          .kv_heads = 8,
          .vocab = 32000,
          .experts = 8,
          .experts_per_token = 2};
}

Shape llama() {
  return {.layers = 32, .hidden = 4096, .ffn = 11008, .heads = 32, .kv_heads = 8, .vocab = 32000};
}

TEST(Experts, CountThePublishedParametersOfMixtral) {
  EXPECT_EQ(total_parameters(mixtral()), 46'702'792'704);
  Shape active = mixtral();
  active.experts = 2;
  const auto without_routers = flops_per_token(active, 0) - 6.0 * 32 * 4096 * 2;
  EXPECT_DOUBLE_EQ(flops_per_token(mixtral(), 0) - 6.0 * 32 * 4096 * 8, without_routers);
}

TEST(Experts, MoreOfThemForATokenThanThereAreIsRefused) {
  Shape shape = mixtral();
  shape.experts_per_token = 9;
  EXPECT_THROW(validate(shape), InputError);
}

TEST(Policy, PresetsKeepTheBytesOfTheirFormulas) {
  for (const Shape& shape : {llama(), mixtral()}) {
    const std::int64_t h = shape.hidden, kf = shape.experts_per_token * shape.ffn,
                       keys = 4 * shape.kv_width();
    const std::int64_t rows = shape.experts > 1 ? 2 * shape.experts_per_token * h : 0;  // dispatched
    EXPECT_EQ(kept_bytes(shape, keep_of(Policy::Engine24), 2), 12 * h + keys + 8 * kf + rows);
    EXPECT_EQ(kept_bytes(shape, keep_of(Policy::None), 2), 12 * h + keys + 6 * kf + rows);
    EXPECT_EQ(kept_bytes(shape, keep_of(Policy::Balanced), 2), 8 * h + keys + 4 * kf + rows);
    EXPECT_EQ(kept_bytes(shape, keep_of(Policy::BalancedFc1), 2), 8 * h + keys);
    EXPECT_EQ(kept_bytes(shape, keep_of(Policy::Full), 2), 2 * h);
    EXPECT_EQ(kept_bytes(shape, keep_of(Policy::Full), 2, /*keys_cached=*/true), 2 * h + keys);
  }
}

TEST(Policy, WhatIsKeptAndWhatIsRecomputedMakeUpAWholeRecord) {
  const Bytes whole = kept_bytes(llama(), keep_of(Policy::None), 2);
  for (unsigned bits = 0; bits < 1u << kSavedTensors; ++bits) {
    KeepSet keep{static_cast<std::uint16_t>(bits)};
    if (keep.has(SavedTensor::SiluGate)) continue;
    for (const bool cached : {false, true}) {
      EXPECT_EQ(kept_bytes(llama(), keep, 2, cached) + recomputed_bytes(llama(), keep, 2, cached), whole);
    }
  }
}

TEST(Policy, NamesParseBackAndUnknownOnesNameTheNearest) {
  for (const auto name : kPolicyNames) EXPECT_EQ(name_of(parse_policy(name)), name);
  try {
    parse_policy("balance");
    FAIL() << "balance is not a policy";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("\"balanced\""), std::string::npos) << error.what();
  }
  EXPECT_EQ(parse_keep({"layer_input"}), keep_of(Policy::Full));
}

TEST(Policy, SetsThatCannotGiveTheRestAreRefusedByTheMissingTensor) {
  const auto refusal = [](const Words& names) {
    try {
      parse_keep(names);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal({"q", "kv", "fc1"}).find("lacks \"layer_input\""), std::string::npos);
  EXPECT_NE(refusal({}).find("lacks \"layer_input\""), std::string::npos);
  EXPECT_NE(refusal({"layer_input", "kvs"}).find("did you mean \"kv\""), std::string::npos);
  EXPECT_NE(refusal({"layer_input", "q", "q"}).find("\"q\" twice"), std::string::npos);
  EXPECT_NE(refusal({"layer_input", "silu"}).find("never forms"), std::string::npos);
}

TEST(Policy, TextOfEveryLegalSetParsesBack) {
  for (unsigned bits = 0; bits < 1u << kSavedTensors; ++bits) {
    const KeepSet keep{static_cast<std::uint16_t>(bits)};
    if (keep.has(SavedTensor::SiluGate) || !keep.has(SavedTensor::LayerInput)) continue;
    EXPECT_EQ(parse_policy_text(policy_text(keep), "memory.layers"), keep) << policy_text(keep);
  }
  EXPECT_THROW(parse_policy_text("ful", "memory.layers"), InputError);
  EXPECT_THROW(parse_policy_text("q+kv", "memory.layers"), InputError);
  EXPECT_THROW(parse_policy_text("", "memory.layers"), InputError);
}

TEST(LocalParameters, ExpertsHaveFewerReplicasToSpreadTheirOptimizerOver) {
  mesh::Mesh mesh{.expert = 4, .data = 8};
  const LocalParameters local = held_parameters(mixtral(), mesh, 32, 0);
  EXPECT_DOUBLE_EQ(local.expert, 32.0 * 8 * 3 * 4096 * 14336 / 4);
  EXPECT_DOUBLE_EQ(optimizer_bytes(local, mesh, Precision::BF16), 12 * (local.dense / 8 + local.expert / 2));
}

TEST(LocalParameters, NormsOfHeadsAreHeldWhole) {
  Shape shape{.layers = 2, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 100};
  const mesh::Mesh mesh{.tensor = 2};
  const double without = held_parameters(shape, mesh, 2, 0).total();
  shape.head_norms = true;
  EXPECT_DOUBLE_EQ(held_parameters(shape, mesh, 2, 0).total(), without + 2.0 * 2 * 16);
  EXPECT_DOUBLE_EQ(held_parameters(shape, {}, 2, 2).total() + 64,
                   static_cast<double>(total_parameters(shape)));
}

TEST(KvGradients, AccumulatorsOfKeyGradientsAreThoseOfOneGroupAndTheOtherChunks) {
  EXPECT_EQ(kv_gradient_slices(12, 1, 12), 12);
  EXPECT_EQ(kv_gradient_slices(12, 2, 4), 20);
  EXPECT_EQ(kv_gradient_slices(1, 2, 1), 0);
}

}  // namespace
}  // namespace penstock::model
