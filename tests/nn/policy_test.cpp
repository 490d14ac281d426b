// SPDX-License-Identifier: Apache-2.0
// What a policy does not keep is formed again with the same bits, and what it keeps has the bytes of
// docs/memory.md, "Saved between F and B".
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "nn/layer_run.h"
#include "nn/plain_pipeline.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using model::KeepSet;
using model::Policy;
using model::Precision;
using model::SavedTensor;
using Slices = std::vector<std::int64_t>;

constexpr Precision kAll[] = {Precision::F64, Precision::F32, Precision::BF16};
constexpr Policy kPresets[] = {Policy::None, Policy::Balanced, Policy::BalancedFc1, Policy::Full};

model::Shape shape(std::int64_t kv_heads = 2) {
  return {.layers = 3, .hidden = 24, .ffn = 40, .heads = 4, .kv_heads = kv_heads, .vocab = 37};
}

std::vector<KeepSet> legal_sets() {
  std::vector<KeepSet> sets;
  for (unsigned bits = 0; bits < 1u << model::kSavedTensors; ++bits) {
    const KeepSet keep{static_cast<std::uint16_t>(bits)};
    if (keep.has(SavedTensor::LayerInput) && !keep.has(SavedTensor::SiluGate)) sets.push_back(keep);
  }
  return sets;
}

// One step over two micro-batches of two sequences.
struct Setting {
  Precision precision = Precision::F32;
  Cut cut;
  std::int64_t kv_heads = 2;
};
StepResult run_policy(const Setting& setting, std::vector<KeepSet> keep) {
  for (KeepSet& set : keep) {
    if (setting.cut.slices.size() > 1) set = set.with(SavedTensor::KeyValue);
  }
  std::vector<reference::MicroBatch> batches;
  for (std::uint64_t seed = 0; seed < 2; ++seed) batches.push_back(random_batch(shape(), 2, 9, seed));
  auto stages = make_stages(shape(setting.kv_heads), setting.precision, setting.cut.stages, 9, 4, keep);
  StepResult result = run_step(stages, batches, setting.cut, 1.0 / 29);
  for (const nn::Stage& stage : stages) EXPECT_EQ(stage.saved_bytes().activations, 0);
  return result;
}

void expect_equal_steps(const StepResult& got, const StepResult& wanted, const std::string& what) {
  EXPECT_EQ(got.loss, wanted.loss) << what;
  for (const auto& [name, gradient] : wanted.gradients) {
    expect_same_bits(got.gradients.at(name), gradient, what + ", " + name);
  }
}

std::vector<KeepSet> on_all_layers(KeepSet keep) { return {3, keep}; }

class PolicyBits : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_F(PolicyBits, OfEveryPresetAreThoseOfNoneInEveryPrecisionSlicingAndBackward) {
  for (const Precision precision : kAll) {
    for (const Slices& slices : {Slices{9}, Slices{4, 5}, Slices{3, 1, 5}}) {
      for (const Backward backward : {Backward::Whole, Backward::Split, Backward::SplitLate}) {
        for (const std::int64_t kv_heads : {1, 2, 4}) {
          const Setting setting{precision, {2, slices, backward}, kv_heads};
          const StepResult none = run_policy(setting, {});
          for (const Policy policy : kPresets) {
            expect_equal_steps(run_policy(setting, on_all_layers(keep_of(policy))), none,
                               std::string(name_of(policy)));
          }
        }
      }
    }
  }
}

TEST_F(PolicyBits, OfEveryLegalSetAreThoseOfNone) {
  for (const Setting& setting :
       {Setting{Precision::BF16, {1, {4, 5}, Backward::SplitLate}}, Setting{Precision::F32, {1, {9}}}}) {
    const StepResult none = run_policy(setting, {});
    for (const KeepSet keep : legal_sets()) {
      expect_equal_steps(run_policy(setting, on_all_layers(keep)), none, policy_text(keep));
    }
  }
}

TEST_F(PolicyBits, OfPoliciesThatDifferFromLayerToLayerAreThoseOfNone) {
  const Setting setting{Precision::BF16, {2, {3, 6}}};
  const StepResult none = run_policy(setting, {});
  const auto sets = legal_sets();
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    std::vector<KeepSet> keep;
    for (std::uint64_t layer = 0; layer < 3; ++layer) {
      keep.push_back(sets[random_bits(draw, layer) % sets.size()]);
    }
    expect_equal_steps(run_policy(setting, keep), none, "draw " + std::to_string(draw));
  }
}

// Bytes that two sequences of 4 tokens leave in three layers, by the table of docs/memory.md, written out.
Bytes bytes_of_table(Policy policy, bool sliced, Bytes e, Bytes a) {
  const Bytes h = 24, kv = 2 * 12, f = 40, heads = 4, tokens = 3 * 2 * 4;
  switch (policy) {
    case Policy::None:
      return tokens * ((6 * h + kv + 3 * f) * e + (heads + 2) * a);
    case Policy::Balanced:
      return tokens * ((4 * h + kv + 2 * f) * e + heads * a);
    case Policy::BalancedFc1:
      return tokens * ((4 * h + kv) * e + heads * a);
    default:
      return tokens * (h + (sliced ? kv : 0)) * e;
  }
}

TEST(PolicyRecords, HoldTheBytesOfTheTableForEveryPreset) {
  for (const Precision precision : kAll) {
    for (const Policy policy : kPresets) {
      for (const bool sliced : {false, true}) {
        KeepSet keep = keep_of(policy);
        if (sliced) keep = keep.with(SavedTensor::KeyValue);
        auto stages = make_stages(shape(), precision, 1, 8, 512, on_all_layers(keep));
        forward_all(stages, random_batch(shape(), 2, 8, 1), 0, sliced ? Slices{4, 4} : Slices{8}, 1.0);
        EXPECT_EQ(stages[0].saved_bytes().activations,
                  2 * bytes_of_table(policy, sliced, model::element_size(precision),
                                     model::accumulator_size(precision)))
            << name_of(policy) << (sliced ? " in slices" : "");
      }
    }
  }
}

void expect_same_results(const LayerResult& got, const LayerResult& wanted, const std::string& what) {
  expect_same_bits(got.grad_input, wanted.grad_input, what);
  ASSERT_EQ(got.operands.size(), wanted.operands.size()) << what;
  for (std::size_t i = 0; i < wanted.operands.size(); ++i)
    expect_same_bits(got.operands[i], wanted.operands[i], what + ", operand " + std::to_string(i));
}

// Every third of the legal sets, from the one at `first` on.
void expect_sets_give_the_bits_of_none(TestLayer& layer, std::size_t first) {
  const at::Tensor x = random_tensor({2, 7, 24}, layer.type, 1);
  const at::Tensor grad = random_tensor({2, 7, 24}, layer.type, 2);
  const LayerResult none = run_layer(layer, x, grad, {4, 3});
  const reference::Weights gradients = layer.gradients();
  const std::vector<KeepSet> sets = legal_sets();
  for (std::size_t i = first; i < sets.size(); i += 3) {
    const KeepSet keep = sets[i];
    layer.zero_gradients();
    const LayerResult got = run_layer(layer, x, grad, {4, 3}, [&](SlicesOfRecords& slices) {
      for (nn::LayerRecord& record : slices[0]) drop_unless(keep.with(SavedTensor::KeyValue), record);
      for (nn::LayerRecord& record : slices[1]) drop_unless(keep, record);  // no slice reads its keys
    });
    expect_same_results(got, none, policy_text(keep));
    for (const auto& [name, gradient] : layer.gradients())
      expect_same_bits(gradient, gradients.at(name), policy_text(keep) + ", " + name);
  }
}

// Every set in every precision and in every number of shards, in three of their nine pairs.
TEST(PolicyLayer, FormsWhateverIsMissingWithTheSameBitsInAnyNumberOfShards) {
  constexpr int kShards[] = {1, 2, 4};
  for (std::size_t i = 0; i < std::size(kAll); ++i) {
    for (std::size_t j = 0; j < std::size(kShards); ++j) {
      SCOPED_TRACE(std::to_string(kShards[j]) + " shards");
      TestLayer layer(shape(), kAll[i], kShards[j]);
      expect_sets_give_the_bits_of_none(layer, (i + j) % 3);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
