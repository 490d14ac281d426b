// SPDX-License-Identifier: Apache-2.0
#include "plan/published/divided_parameters.h"

#include <gtest/gtest.h>

#include "plan/models.h"

namespace penstock::plan {
namespace {

TEST(DividedParameters, AreSharesOfATensorRankButForTheNorms) {
  const model::Shape& shape = find_model("mixtral-8x7b").shape;
  const mesh::Mesh mesh{.tensor = 2, .expert = 4, .data = 8};
  const model::LocalParameters plain = divided_parameters(shape, mesh, 3, 1, /*norms=*/false);
  EXPECT_DOUBLE_EQ(2 * plain.dense,
                   3.0 * (model::attention_parameters(shape) + model::router_parameters(shape)) +
                       1.0 * shape.vocab * shape.hidden);
  EXPECT_DOUBLE_EQ(2 * 4 * plain.expert, 3.0 * 3 * shape.experts * shape.hidden * shape.ffn);
  EXPECT_EQ(plain.expert_replicas, 2);
  EXPECT_DOUBLE_EQ(divided_parameters(shape, mesh, 3, 1).dense, plain.dense + 3.0 * 2 * shape.hidden);
}

}  // namespace
}  // namespace penstock::plan
