// SPDX-License-Identifier: Apache-2.0
// Which keys are read at all.
#include "nn/groups/documents.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace penstock::testing {
namespace {

using nn::kernels::Mask;

// Two sequences of twelve tokens: documents of 4 and 8; of 6, 3 and 3.
const nn::Documents& documents() {
  static const nn::Documents all{.starts = at::tensor({0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4,  //
                                                       0, 0, 0, 0, 0, 0, 6, 6, 6, 9, 9, 9},
                                                      at::kLong)
                                               .view({2, 12})};
  return all;
}

TEST(Documents, WithoutStartsEveryQuerySeesAllKeys) {
  const auto visible = nn::Documents().visible(Mask::None, {8, 4}, {0, 4});
  ASSERT_TRUE(visible.has_value());
  EXPECT_FALSE(visible->starts.defined());
}

TEST(Documents, ThatEndBeforeTheQueriesAreNotRead) {
  EXPECT_FALSE(documents().visible(Mask::None, {8, 4}, {0, 4}).has_value());
  EXPECT_TRUE(documents().visible(Mask::None, {8, 4}, {4, 4}).has_value());
  EXPECT_FALSE(documents().visible(Mask::None, {9, 3}, {0, 4}).has_value());
}

TEST(Documents, ThatReachBackToAllKeysNeedNoMask) {
  const auto all = documents().visible(Mask::None, {2, 2}, {0, 2});
  ASSERT_TRUE(all.has_value());
  EXPECT_FALSE(all->starts.defined());
  const auto some = documents().visible(Mask::None, {4, 4}, {0, 4});
  ASSERT_TRUE(some.has_value());
  ASSERT_TRUE(some->starts.defined());
  EXPECT_EQ(some->first_key, 0);
  EXPECT_EQ(some->starts.sizes(), (std::vector<std::int64_t>{2, 4}));
}

TEST(Documents, AlwaysSeeThemselves) {
  for (std::int64_t first = 0; first < 12; ++first) {
    for (std::int64_t count = 1; first + count <= 12; ++count)
      EXPECT_TRUE(documents().visible(Mask::Causal, {first, count}, {first, count}).has_value());
  }
}

}  // namespace
}  // namespace penstock::testing
