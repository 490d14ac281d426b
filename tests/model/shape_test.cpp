// SPDX-License-Identifier: Apache-2.0
#include "model/shape.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "failure.h"
#include "model/parameters.h"

namespace penstock::model {
namespace {

// Llama 2 7B and Llama 3 8B, whose parameter counts are published to the last digit.
Shape llama2_7b() {
  return {.layers = 32, .hidden = 4096, .ffn = 11008, .heads = 32, .kv_heads = 32, .vocab = 32000};
}
Shape llama3_8b() {
  return {.layers = 32, .hidden = 4096, .ffn = 14336, .heads = 32, .kv_heads = 8, .vocab = 128256};
}

TEST(Shape, CountsThePublishedParametersOfLlama) {
  EXPECT_EQ(total_parameters(llama2_7b()), 6'738'415'616);
  EXPECT_EQ(total_parameters(llama3_8b()), 8'030'261'248);
}

TEST(Shape, CountsATiedEmbeddingOnce) {
  Shape shape = llama3_8b();
  shape.tied_embeddings = true;
  EXPECT_EQ(total_parameters(shape), 8'030'261'248 - shape.vocab * shape.hidden);
  EXPECT_EQ(parameter_names(shape).size() + 1, parameter_names(llama3_8b()).size());
}

TEST(Shape, CountsSixFlopsPerMultipliedWeightAndCausalAttention) {
  const Shape shape = llama2_7b();
  const double weights = 6.0 * static_cast<double>(total_parameters(shape) - shape.vocab * shape.hidden);
  EXPECT_DOUBLE_EQ(flops_per_token(shape, 4096), weights + 6.0 * 32 * 4096 * 4096);
}

TEST(Shape, SplitsLayersEvenlyAndLosesNone) {
  for (int layers = 1; layers <= 20; ++layers) {
    for (int stages = 1; stages <= layers; ++stages) {
      const auto ranges = split_layers(layers, stages);
      std::int64_t next = 0;
      for (const LayerRange& range : ranges) {
        EXPECT_EQ(range.first, next);
        next += range.count;
      }
      EXPECT_EQ(next, layers);
      EXPECT_LE(ranges.front().count - ranges.back().count, 1);
      EXPECT_GE(ranges.back().count, 1);
    }
  }
}

TEST(Shape, RefusesSplitsThatDoNotFit) {
  EXPECT_EQ(split_layers(12, 2, {7, 5})[1], (LayerRange{7, 5}));
  EXPECT_THROW(split_layers(4, 5), InputError);
  EXPECT_EQ(failure<InputError>([] { split_layers(4, 2, {4}); }),
            "parallel.layers has 1 number for 2 stages");
  EXPECT_THROW(split_layers(4, 2, {4, 0}), InputError);
  EXPECT_THROW(split_layers(4, 2, {3, 2}), InputError);
}

TEST(Shape, RefusesMoreParametersThanCanBeCounted) {
  Shape shape{
      .layers = 1'000'000, .hidden = 1'000'000, .ffn = 4'000'000, .heads = 1000, .kv_heads = 8, .vocab = 1};
  EXPECT_THROW(validate(shape), InputError);
  shape.layers = 10;
  validate(shape);
  shape.experts = std::int64_t{1} << 62;
  EXPECT_THROW(validate(shape), InputError);
}

TEST(Shape, RefusesHeadsThatDoNotDivideAndNamesThem) {
  Shape shape = llama2_7b();
  shape.heads = 30;
  try {
    validate(shape);
    FAIL() << "30 heads do not divide 4096";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("heads = 30"), std::string::npos) << error.what();
  }
  shape = llama2_7b();
  shape.kv_heads = 5;
  EXPECT_THROW(validate(shape), InputError);
  shape = llama2_7b();
  shape.vocab = 0;
  EXPECT_THROW(validate(shape), InputError);
  shape = llama2_7b();
  shape.heads = 4096;
  EXPECT_THROW(validate(shape), InputError) << "a head of one number cannot be rotated";
  EXPECT_NO_THROW(validate(llama3_8b()));
}

TEST(Shape, KnowsItsPrecisionsByName) {
  for (const char* name : {"f64", "f32", "bf16"}) EXPECT_EQ(name_of(parse_precision(name)), name);
  EXPECT_THROW(parse_precision("fp8"), InputError);
  EXPECT_EQ(element_size(Precision::BF16), 2);
  EXPECT_EQ(accumulator_size(Precision::BF16), 4);
}

TEST(ParameterShapes, AddUpToAllParameters) {
  for (const bool tied : {false, true}) {
    for (const std::int64_t head_size : {0, 6}) {
      const Shape shape{.layers = 3,
                        .hidden = 16,
                        .ffn = 20,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_size = head_size,
                        .vocab = 33,
                        .tied_embeddings = tied};
      std::int64_t sum = 0;
      for (const ParameterShape& parameter : parameter_shapes(shape)) {
        std::int64_t product = 1;
        for (const std::int64_t size : parameter.sizes) product *= size;
        sum += product;
      }
      EXPECT_EQ(sum, total_parameters(shape));
    }
  }
}

}  // namespace
}  // namespace penstock::model
