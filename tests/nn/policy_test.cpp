// SPDX-License-Identifier: Apache-2.0
// What a policy does not keep is formed again with the same bits, and what it keeps has the bytes of
// algorithms.md section 5.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "nn/attention_block.h"
#include "nn/feed_forward.h"
#include "nn/plain_pipeline.h"
#include "nn/stage_parameters.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using model::KeepSet;
using model::Policy;
using model::Precision;
using model::SavedTensor;
using nn::LayerRecord;
using nn::Saved;
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
StepResult run(const Setting& setting, std::vector<KeepSet> keep) {
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
          const StepResult none = run(setting, {});
          for (const Policy policy : kPresets) {
            expect_equal_steps(run(setting, on_all_layers(keep_of(policy))), none,
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
    const StepResult none = run(setting, {});
    for (const KeepSet keep : legal_sets()) {
      expect_equal_steps(run(setting, on_all_layers(keep)), none, policy_text(keep));
    }
  }
}

TEST_F(PolicyBits, OfPoliciesThatDifferFromLayerToLayerAreThoseOfNone) {
  const Setting setting{Precision::BF16, {2, {3, 6}}};
  const StepResult none = run(setting, {});
  const auto sets = legal_sets();
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    std::vector<KeepSet> keep;
    for (std::uint64_t layer = 0; layer < 3; ++layer) {
      keep.push_back(sets[random_bits(draw, layer) % sets.size()]);
    }
    expect_equal_steps(run(setting, keep), none, "draw " + std::to_string(draw));
  }
}

// Bytes that two sequences of 4 tokens leave in three layers, by the table of algorithms.md, written out.
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

// Blocks alone: a filled record, some of it dropped, and formed again.
struct Blocks {
  std::vector<nn::Parameter> parameters;
  nn::kernels::RotaryTable rotary;
  nn::AttentionBlock attention;
  nn::FeedForward feed_forward;

  explicit Blocks(Precision precision) {
    parameters = nn::make_parameters(
        {.shape = shape(), .layers = {0, 1}, .first = false, .last = false, .precision = precision});
    rotary = nn::kernels::rotary_table(shape(), 16, nn::compute_type(precision));
    const auto part = [&](const char* name) {
      return &nn::parameter_named(parameters, std::string("model.layers.0.") + name + ".weight");
    };
    attention = {4,
                 2,
                 part("self_attn.q_proj"),
                 part("self_attn.k_proj"),
                 part("self_attn.v_proj"),
                 part("self_attn.o_proj"),
                 &rotary};
    feed_forward = {part("mlp.gate_proj"), part("mlp.up_proj"), part("mlp.down_proj")};
  }
};

void expect_same_records(const LayerRecord& got, const LayerRecord& wanted, const std::string& what) {
  for (std::size_t i = 0; i < nn::kSavedCount; ++i) {
    ASSERT_EQ(got.tensors[i].defined(), wanted.tensors[i].defined()) << what << ", tensor " << i;
    if (wanted.tensors[i].defined()) {
      expect_same_bits(got.tensors[i], wanted.tensors[i], what + ", tensor " + std::to_string(i));
    }
  }
}

TEST(AttentionBlock, FormsWhateverIsMissingWithTheSameBits) {
  for (const Precision precision : kAll) {
    Blocks blocks(precision);
    const at::ScalarType type = nn::compute_type(precision);
    LayerRecord first, second;
    first[Saved::Norm1Output] = random_tensor({8, 24}, type, 1);
    second[Saved::Norm1Output] = random_tensor({6, 24}, type, 2);
    nn::attend(blocks.attention, {2, 4, 0}, {}, first);
    LayerRecord* earlier[] = {&first};
    nn::attend(blocks.attention, {2, 3, 4}, earlier, second);
    for (const KeepSet keep : legal_sets()) {
      LayerRecord record = second;
      drop_unless(keep.with(SavedTensor::NormOneOutput), record);
      nn::attend(blocks.attention, {2, 3, 4}, earlier, record);
      expect_same_records(record, second, policy_text(keep));
    }
  }
}

TEST(FeedForwardBlock, FormsWhateverIsMissingWithTheSameBits) {
  for (const Precision precision : kAll) {
    Blocks blocks(precision);
    const at::ScalarType type = nn::compute_type(precision);
    const at::Tensor grad = random_tensor({6, 24}, type, 2);
    LayerRecord whole;
    whole[Saved::Norm2Output] = random_tensor({6, 24}, type, 1);
    nn::expand(blocks.feed_forward, whole);
    nn::feed_forward_output(blocks.feed_forward, whole);
    nn::WeightRecord wanted;
    const at::Tensor input_gradient =
        nn::feed_forward_backward_input(blocks.feed_forward, grad, whole, wanted);
    for (const KeepSet keep : legal_sets()) {
      LayerRecord record = whole;
      drop_unless(keep.with(SavedTensor::NormTwoOutput), record);
      nn::expand(blocks.feed_forward, record);
      nn::WeightRecord got;
      expect_same_bits(nn::feed_forward_backward_input(blocks.feed_forward, grad, record, got),
                       input_gradient, policy_text(keep));
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        expect_same_bits(got[i].input, wanted[i].input, policy_text(keep));
        expect_same_bits(got[i].grad_output, wanted[i].grad_output, policy_text(keep));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
