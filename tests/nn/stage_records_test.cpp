// SPDX-License-Identifier: Apache-2.0
// What stages keep, for how long, what they refuse, and their parameters.
#include <gtest/gtest.h>

#include "backend/memory.h"
#include "nn/plain_pipeline.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using model::Precision;

constexpr Precision kPrecisions[] = {Precision::F64, Precision::F32, Precision::BF16};

model::Shape record_shape() {
  return {.layers = 3, .hidden = 24, .ffn = 40, .heads = 4, .kv_heads = 2, .vocab = 37};
}

// Bytes of one slice of `tokens` tokens of two sequences in all layers, from the table of docs/memory.md.
struct Expected {
  Bytes activations, weight_record, kv_gradients, logits;
};
Expected expected_bytes(const model::Shape& s, Precision precision, std::int64_t tokens) {
  const Bytes e = model::element_size(precision), a = model::accumulator_size(precision), n = 2 * tokens;
  const Bytes kv = 2 * s.kv_width(), table = 6 * s.hidden + kv + 3 * s.ffn;
  return {s.layers * n * (table * e + (2 + s.heads) * a), s.layers * n * table * e, s.layers * n * kv * a,
          n * s.hidden * e};
}

TEST(StageRecords, HoldExactlyTheBytesOfTheTableUntilTheyAreUsed) {
  for (const Precision precision : kPrecisions) {
    auto stages = make_stages(record_shape(), precision, 1, 7);
    const auto batch = random_batch(record_shape(), 2, 7, 1);
    const Expected first = expected_bytes(record_shape(), precision, 4),
                   second = expected_bytes(record_shape(), precision, 3);
    forward_all(stages, batch, 0, {4, 3}, 1.0);
    EXPECT_EQ(stages[0].saved_bytes().activations, first.activations + second.activations);
    EXPECT_EQ(stages[0].saved_bytes().logits, first.logits + second.logits);
    EXPECT_EQ(stages[0].saved_bytes().kv_gradients, 0);
    stages[0].backward_input({0, 1}, {});
    const auto middle = stages[0].saved_bytes();
    EXPECT_EQ(middle.activations, first.activations);
    EXPECT_EQ(middle.weight_records, second.weight_record);
    EXPECT_EQ(middle.kv_gradients, first.kv_gradients) << "only the earlier slice has later contributions";
    EXPECT_EQ(middle.logits, first.logits);
    stages[0].backward_weight({0, 1});
    stages[0].backward({0, 0}, {});
    const auto end = stages[0].saved_bytes();
    EXPECT_EQ(end.activations + end.weight_records + end.kv_gradients + end.logits, 0);
  }
}

TEST(StageRecords, AreAllThatTheLedgerCountsAsKept) {
  backend::install_allocator();
  for (const Precision precision : kPrecisions) {
    backend::Ledger ledger;
    const backend::LedgerScope scope(ledger);
    auto stages = make_stages(record_shape(), precision, 1, 7);
    const auto batch = random_batch(record_shape(), 2, 7, 1);
    const auto expect_equal = [&] {
      const auto saved = stages[0].saved_bytes();
      EXPECT_EQ(ledger.live(model::Category::Activations), saved.activations);
      EXPECT_EQ(ledger.live(model::Category::WeightRecords), saved.weight_records);
      EXPECT_EQ(ledger.live(model::Category::KvGradients), saved.kv_gradients);
      EXPECT_EQ(ledger.live(model::Category::Logits), saved.logits);
    };
    forward_all(stages, batch, 0, {4, 3}, 1.0);
    expect_equal();
    stages[0].backward_input({0, 1}, {});
    expect_equal();
    stages[0].backward({0, 0}, {});
    stages[0].backward_weight({0, 1});
    expect_equal();
    const Bytes parameters = model::total_parameters(record_shape());
    const Bytes tables =
        7 * record_shape().head_dim() * model::accumulator_size(precision);  // of the rotation
    EXPECT_EQ(ledger.live(model::Category::Weights), parameters * model::element_size(precision) + tables);
    EXPECT_EQ(ledger.live(model::Category::Gradients), parameters * model::accumulator_size(precision));
    EXPECT_EQ(ledger.live(model::Category::Optimizer), precision == Precision::BF16 ? parameters * 4 : 0);
  }
}

nn::ForwardInput slice_of(const reference::MicroBatch& batch, int slice, std::int64_t begin,
                          std::int64_t length) {
  return {.key = {5, slice},
          .place = {batch.tokens.size(0), length, begin},
          .tokens = {batch.tokens.narrow(1, begin, length)},
          .targets = {batch.targets.narrow(1, begin, length)}};
}

TEST(StageEvaluation, HasTheTrainingLossFormsNoGradientsAndForgets) {
  auto stages = make_stages(record_shape(), Precision::F64, 1, 7);
  const auto batch = random_batch(record_shape(), 2, 7, 1);
  const double loss = stages[0].evaluate(slice_of(batch, 0, 0, 4)).loss_sum.value() +
                      stages[0].evaluate(slice_of(batch, 1, 4, 3)).loss_sum.value();
  for (const nn::Parameter& parameter : stages[0].parameters()) {
    EXPECT_EQ(parameter.gradient.abs().max().item<double>(), 0) << parameter.name;
  }
  EXPECT_EQ(stages[0].saved_bytes().activations, 3 * 2 * 7 * 2 * record_shape().kv_width() * 8)
      << "keys and values";
  stages[0].forget(5);
  EXPECT_EQ(stages[0].saved_bytes().activations, 0);
  EXPECT_NEAR(loss, forward_all(stages, batch, 0, {4, 3}, 1.0), 1e-12);
}

TEST(StageEvaluation, LogitsOfOneTokenAtATimeAreThoseOfTheWholeSequence) {
  auto stages = make_stages(record_shape(), Precision::F64, 1, 7);
  const auto batch = random_batch(record_shape(), 2, 7, 1);
  const at::Tensor wanted = reference::logits(record_shape(), weights_of(stages), batch.tokens);
  for (int token = 0; token < 7; ++token) {
    const at::Tensor got = stages[0].evaluate_logits(slice_of(batch, token, token, 1));
    expect_near(got, wanted.narrow(1, token, 1), 1e-10, "token " + std::to_string(token));
  }
}

TEST(StageOrder, CallsOutOfOrderAreBrokenInvariants) {
  auto stages = make_stages(record_shape(), Precision::F32, 1, 7);
  nn::Stage& stage = stages[0];
  const auto batch = random_batch(record_shape(), 2, 7, 1);
  EXPECT_THROW(stage.forward(slice_of(batch, 1, 4, 3)), std::logic_error) << "its first slice is missing";
  auto again = make_stages(record_shape(), Precision::F32, 1, 7);
  forward_all(again, batch, 0, {4, 3}, 1.0);
  EXPECT_THROW(again[0].backward({0, 0}, {}), std::logic_error) << "the later slice comes first";
  EXPECT_THROW(again[0].backward({1, 0}, {}), std::logic_error) << "never went forward";
  EXPECT_THROW(again[0].backward_weight({0, 1}), std::logic_error) << "before its input's backward";
  again[0].backward({0, 1}, {});
  EXPECT_THROW(again[0].backward({0, 1}, {}), std::logic_error) << "twice";
}

TEST(StageParameters, DependOnSeedAndNameAlone) {
  model::Shape tied = record_shape();
  tied.tied_embeddings = true;
  for (const Precision precision : kPrecisions) {
    auto whole = make_stages(tied, precision, 1, 7), cut = make_stages(tied, precision, 3, 7);
    std::map<std::string, at::Tensor> wanted;
    for (const auto& parameter : whole[0].parameters()) wanted[parameter.name] = parameter.weight;
    std::size_t seen = 0;
    for (nn::Stage& stage : cut) {
      for (const auto& parameter : stage.parameters()) {
        expect_same_bits(parameter.weight, wanted.at(parameter.name), parameter.name);
        ++seen;
      }
    }
    EXPECT_EQ(seen, wanted.size());
    expect_same_bits(wanted.at("lm_head.weight"), wanted.at("model.embed_tokens.weight"), "tied");
  }
}

TEST(StageParameters, HaveTheDeviationsOfTheRecipe) {
  const model::Shape large{.layers = 8, .hidden = 128, .ffn = 256, .heads = 4, .kv_heads = 4, .vocab = 300};
  const nn::StageOptions options{.shape = large, .layers = {0, 1}};
  nn::Stage stage(options);
  for (const nn::Parameter& parameter : stage.parameters()) {
    const bool to_residual =
        parameter.name.ends_with("o_proj.weight") || parameter.name.ends_with("down_proj.weight");
    const double deviation = parameter.is_matrix ? (to_residual ? 0.02 / 4 : 0.02) : 0.0;
    EXPECT_NEAR(parameter.weight.std().item<double>(), deviation, 0.03 * deviation) << parameter.name;
    EXPECT_NEAR(parameter.weight.mean().item<double>(), parameter.is_matrix ? 0 : 1, 5e-4) << parameter.name;
  }
}

TEST(StageParameters, NarrowWeightsAreTheirMastersRounded) {
  auto stages = make_stages(record_shape(), Precision::BF16, 1, 7);
  for (const nn::Parameter& parameter : stages[0].parameters()) {
    expect_same_bits(parameter.weight, parameter.master.to(at::kBFloat16), parameter.name);
    at::Tensor(parameter.master).add_(0.37);
  }
  stages[0].weights_from_masters();
  for (const nn::Parameter& parameter : stages[0].parameters()) {
    expect_same_bits(parameter.weight, parameter.master.to(at::kBFloat16), parameter.name);
  }
}

}  // namespace
}  // namespace penstock::testing
