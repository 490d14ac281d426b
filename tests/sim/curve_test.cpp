// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "failure.h"
#include "sim/costs/collectives.h"
#include "sim/costs/kernel_cost.h"
#include "sim/hardware_files.h"

namespace penstock::sim {
namespace {

TEST(Curve, MeetsItsPointsLiesBetweenThemAndHoldsItsEnds) {
  const Numbers at{1, 10, 100}, values{2, 4, 3};
  EXPECT_DOUBLE_EQ(on_curve(at, values, 10), 4);
  EXPECT_DOUBLE_EQ(on_curve(at, values, std::sqrt(10)), 3);
  EXPECT_DOUBLE_EQ(on_curve(at, values, 0.1), 2);
  EXPECT_DOUBLE_EQ(on_curve(at, values, 1e9), 3);
  EXPECT_DOUBLE_EQ(on_curve({5}, {7}, 1), 7);
}

TEST(Grid, MeetsItsPointsAndIsACurveAlongItsRowsAndColumns) {
  const Numbers rows{1, 10}, columns{2, 4, 8}, values{1, 2, 3, 4, 5, 6};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j)
      EXPECT_DOUBLE_EQ(on_grid(rows, columns, values, rows[i], columns[j]), values[3 * i + j]);
  }
  for (const double column : {1.0, 3.0, 7.0, 20.0})
    EXPECT_DOUBLE_EQ(on_grid(rows, columns, values, 1, column), on_curve(columns, {1, 2, 3}, column));
  for (const double row : {0.5, 2.0, 30.0})
    EXPECT_DOUBLE_EQ(on_grid(rows, columns, values, row, 4), on_curve(rows, {2, 5}, row));
}

Hardware measured_hardware() {
  Hardware hardware = read_hardware("h800");
  hardware.measured.matrix_tokens = {100};
  hardware.measured.matrix_width = {100, 1000};
  hardware.measured.matrix_tflops = {10, 20};
  hardware.measured.matrix_weight_tflops = {5, 10};
  hardware.measured.attention_tokens = {1000};
  hardware.measured.attention_tflops = {8};
  hardware.measured.earlier_attention_tflops = {16};
  hardware.measured.optimizer_gbps = 100;
  hardware.measured.link_kb = {1, 1000};
  hardware.measured.link_us = {10, 109.9};
  return hardware;
}

TEST(MeasuredTables, ReplaceTheEfficienciesOfProductsAttentionOptimizerAndLinks) {
  const Hardware hardware = measured_hardware();
  validate(hardware, "x.toml");
  EXPECT_DOUBLE_EQ(matrix_product(hardware, 50, 1000, 1000), 1e8 / 20e12);
  EXPECT_DOUBLE_EQ(matrix_product_backward(hardware, 50, 1000, 1000, 8), 1e8 / 20e12 + 1e8 / 10e12);
  const FlashAttention three{.queries = 1000, .tokens = 1000, .earlier = 2, .width = 64};
  EXPECT_DOUBLE_EQ(flash_attention(hardware, three), 0.5 * 2.56e8 / 8e12 + 2 * 2.56e8 / 16e12);
  EXPECT_DOUBLE_EQ(optimizer_passes(hardware, 1e9), 0.01);
  const mesh::Mesh two{.pipeline = 2};
  EXPECT_NEAR(stage_transfer(hardware, two, 500e3), 59.9e-6, 1e-9);
  EXPECT_NEAR(stage_transfer(hardware, two, 2e6), 209.9e-6, 1e-9);
}

TEST(MeasuredTables, ThatDoNotFitTogetherAreRefusedNamingTheKey) {
  const auto refused = [](void (*damage)(Measured&)) {
    Hardware hardware = measured_hardware();
    damage(hardware.measured);
    try {
      validate(hardware, "x.toml");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto names = [&](void (*damage)(Measured&), const char* key) {
    EXPECT_NE(refused(damage).find(key), std::string::npos) << refused(damage);
  };
  names([](Measured& m) { m.matrix_tokens = {2, 1}; }, "matrix_tokens must ascend");
  names([](Measured& m) { m.matrix_width = {}; }, "matrix_width");
  names([](Measured& m) { m.matrix_tflops = {1}; }, "measured.matrix_tflops has 1 values");
  names([](Measured& m) { m.matrix_weight_tflops = {1}; }, "matrix_weight_tflops");
  names([](Measured& m) { m.attention_tflops = {}; }, "attention_tflops");
  names([](Measured& m) { m.elementwise_mb = {1}; }, "elementwise_gbps");
  names([](Measured& m) { m.link_us = {5, 1}; }, "link_us must not fall");
  // GFLOP/s in place of TFLOP/s
  names([](Measured& m) { m.matrix_weight_tflops.back() *= 1e4; }, "more than ten times device.bf16_tflops");
  names([](Measured& m) { (m.earlier_attention_tflops = m.attention_tflops).back() *= 1e4; },
        "measured.earlier_attention_tflops has ");
  names([](Measured& m) { m.attention_tflops.back() *= 1e4; }, "measured.attention_tflops has ");
}

// NVIDIA's figures at 4K, 8K, 16K and 32K tokens: causal, and unmasked.
TEST(CudnnRates, ArePublishedOnesAtThePublishedLengths) {
  const Hardware hardware = read_hardware("h800-cudnn");
  EXPECT_EQ(hardware.kernels.attention, "cudnn");
  struct Row {
    double tokens, causal, causal_backward, unmasked, unmasked_backward;
  };
  for (const Row& row : {Row{4096, 591, 474, 671, 560}, Row{8192, 644, 541, 691, 594},
                         Row{16384, 673, 579, 702, 612}, Row{32768, 688, 581, 693, 572}}) {
    const double width = 8192, products = 4 * row.tokens * row.tokens * width;
    const FlashAttention own{row.tokens, row.tokens, 0, width}, two{row.tokens, row.tokens, 1, width};
    const Seconds forward = flash_attention(hardware, own),
                  backward = flash_attention_backward(hardware, own);
    EXPECT_DOUBLE_EQ(forward, products / 2 / (row.causal * 1e12));
    EXPECT_DOUBLE_EQ(backward, 2.5 * products / 2 / (row.causal_backward * 1e12));
    EXPECT_NEAR(flash_attention(hardware, two) - forward, products / (row.unmasked * 1e12), 1e-12);
    EXPECT_NEAR(flash_attention_backward(hardware, two) - backward,
                2.5 * products / (row.unmasked_backward * 1e12), 1e-12);
  }
}

// A causal sequence in two slices: both over their own keys, the second over the first's.
TEST(CudnnRates, OfSlicesAreThoseOfTheirOwnKeysAndOfEarlierOnes) {
  const Hardware hardware = read_hardware("h800-cudnn");
  const double s = 16384, width = 1024, products = 4 * s * s * width;
  const Seconds sliced =
      flash_attention(hardware, {s, s, 0, width}) + flash_attention(hardware, {s, s, 1, width});
  EXPECT_NEAR(sliced, products / 673e12 + products / 702e12, 1e-12);
}

TEST(CudnnRates, AreAllThatH800CudnnChanges) {
  Hardware cudnn = read_hardware("h800-cudnn"), fa2 = read_hardware("h800");
  OptionTable changed, original;
  describe(cudnn, changed);
  describe(fa2, original);
  Words names;
  for (std::size_t i = 0; i < original.size(); ++i) {
    if (value_text(changed[i]) != value_text(original[i])) names.push_back(original[i].name());
  }
  EXPECT_EQ(names,
            (Words{"device.name", "efficiency.attention", "kernels.attention", "measured.attention_tokens",
                   "measured.attention_tflops", "measured.attention_backward_tflops",
                   "measured.earlier_attention_tflops", "measured.earlier_attention_backward_tflops"}));
}

TEST(Hardware, ARateOfZeroIsNotSaidToBeMissingAloneAndOneNearZeroIsRefused) {
  Hardware hardware = read_hardware("h800");
  const auto refused = [&](double rate) {
    hardware.device.bf16_tflops = rate;
    return failure<InputError>([&] { validate(hardware, "x.toml"); });
  };
  EXPECT_EQ(refused(0), "x.toml: device.bf16_tflops is missing or 0; it must be positive");
  EXPECT_EQ(refused(1e-308), "x.toml: device.bf16_tflops is less than 1e-09");
}

TEST(CudnnRates, AreNeededWhereTheKernelsAreCudnns) {
  Hardware hardware = read_hardware("h800");
  hardware.kernels.attention = "cudnn";
  try {
    validate(hardware, "x.toml");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string text = error.what();
    for (const char* part :
         {"x.toml", "kernels.attention = \"cudnn\"", "measured.attention_tokens", "\"fa2\""})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace penstock::sim
