// SPDX-License-Identifier: Apache-2.0
// The promise of equal bits: the same slices give the same losses and gradients however the layers are cut
// into stages and however the backward is asked for; and what narrow types lose against f64.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "nn/plain_pipeline.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using model::Precision;
using Slices = std::vector<std::int64_t>;

constexpr Precision kNarrow[] = {Precision::F32, Precision::BF16};

model::Shape bits_shape(bool tied = false) {
  model::Shape result{.layers = 4, .hidden = 64, .ffn = 96, .heads = 4, .kv_heads = 2, .vocab = 259};
  result.tied_embeddings = tied;
  return result;
}

StepResult run(const Cut& cut, Precision precision, bool tied = false) {
  std::vector<reference::MicroBatch> batches;
  for (std::uint64_t seed = 0; seed < 2; ++seed) batches.push_back(random_batch(bits_shape(), 2, 48, seed));
  auto stages = make_stages(bits_shape(tied), precision, cut.stages, 48, 32);
  return run_step(stages, batches, cut, 1.0 / 154);
}

void expect_equal_bits(const StepResult& a, const StepResult& b) {
  EXPECT_EQ(a.loss, b.loss);
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (const auto& [name, gradient] : a.gradients) expect_same_bits(b.gradients.at(name), gradient, name);
}

// Greatest over the parameters of |a − b| / |b| (Frobenius norms).
double distance(const reference::Weights& a, const reference::Weights& b) {
  double greatest = 0;
  for (const auto& [name, wanted] : b) {
    const at::Tensor exact = wanted.to(at::kDouble);
    const at::Tensor difference = a.at(name).to(at::kDouble) - exact;
    greatest = std::max(greatest, difference.norm().item<double>() / exact.norm().item<double>());
  }
  return greatest;
}

class StageBits : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(1); }
};

TEST_F(StageBits, AreThoseOfAnyOtherCutIntoStages) {
  for (const Precision precision : kNarrow) {
    for (const Slices& slices : {Slices{48}, Slices{16, 16, 16}, Slices{20, 17, 11}}) {
      for (const bool tied : {false, true}) {
        const StepResult whole = run({1, slices}, precision, tied);
        for (const int stages : {2, 3, 4}) expect_equal_bits(whole, run({stages, slices}, precision, tied));
      }
    }
  }
}

// However many parameters come between: a vector that grows moves the first.
TEST_F(StageBits, OfTheEmbeddingAreThoseOfTheOutputItIsTiedTo) {
  for (std::int64_t layers = 1; layers <= 15; ++layers) {
    model::Shape shape = bits_shape(true);
    shape.layers = layers;
    auto stages = make_stages(shape, Precision::F32, 1, 48, 32);
    const auto parameters = stages.front().parameters();
    EXPECT_TRUE(parameters.back().master.is_same(parameters.front().master)) << layers;
  }
}

TEST_F(StageBits, AreThoseOfASplitBackward) {
  for (const Precision precision : kNarrow) {
    const StepResult whole = run({2, {20, 28}}, precision);
    expect_equal_bits(whole, run({2, {20, 28}, Backward::Split}, precision));
    expect_equal_bits(whole, run({2, {20, 28}, Backward::SplitLate}, precision));
  }
}

TEST_F(StageBits, AreTheSameInEveryRunAndCutWithTwoThreads) {
  at::set_num_threads(2);
  for (const Precision precision : kNarrow) {
    const StepResult whole = run({1, {20, 28}}, precision);
    expect_equal_bits(whole, run({1, {20, 28}}, precision));
    expect_equal_bits(whole, run({4, {20, 28}}, precision));
  }
}

TEST(StagePrecision, NarrowTypesStayNearF64) {
  for (const Precision precision : kNarrow) {
    auto stages = make_stages(bits_shape(), precision, 1, 48);
    const std::vector batches{random_batch(bits_shape(), 2, 48, 0)};
    const reference::Step exact = reference::step(bits_shape(), weights_of(stages), batches, 1.0 / 77);
    const StepResult got = run_step(stages, batches, {1, {16, 32}}, 1.0 / 77);
    // Seen: loss 9e-9 and gradients 5e-7 off in f32, 8e-5 and 1e-2 in bf16.
    EXPECT_NEAR(got.loss, exact.loss, precision == Precision::F32 ? 1e-7 : 5e-4);
    EXPECT_LT(distance(got.gradients, exact.gradients), precision == Precision::F32 ? 1e-6 : 2e-2);
  }
}

TEST(StagePrecision, SlicedStaysNearUnsliced) {
  const StepResult whole = run({1, {48}}, Precision::BF16), sliced = run({1, {16, 16, 16}}, Precision::BF16);
  // Seen: 4e-5 and 7e-3.
  EXPECT_NEAR(whole.loss, sliced.loss, 2e-4);
  EXPECT_LT(distance(sliced.gradients, whole.gradients), 1.5e-2);
}

}  // namespace
}  // namespace penstock::testing
