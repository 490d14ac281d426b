// SPDX-License-Identifier: Apache-2.0
#include "base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace penstock {
namespace {

double sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.value();
}

TEST(ExactSum, IsTheValueOfOne) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                                    static_cast<int>(random() % 2000) - 1000);
    EXPECT_EQ(sum_of({value}), value);
  }
  for (const double value : {0.0, std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::min(), std::numeric_limits<double>::max()})
    EXPECT_EQ(sum_of({value}), value);
}

TEST(ExactSum, LosesNothingBetweenGreatAndSmall) {
  EXPECT_EQ(sum_of({1e300, 1e-300}), 1e300);
  std::vector<double> ones(1 << 16, 0x1p-60);
  ones.push_back(1.0);
  EXPECT_EQ(sum_of(ones), 1.0 + 0x1p-44);
  EXPECT_EQ(sum_of({1.0, 0x1p-53}), 1.0) << "a tie goes to the even one";
  EXPECT_EQ(sum_of({1.0, 0x1p-53, 0x1p-1000}), 1.0 + 0x1p-52) << "above the tie";
}

TEST(ExactSum, HasTheSameBitsInAnyOrderAndAnyParts) {
  std::mt19937_64 random(2);
  std::vector<double> values(5000);
  for (double& value : values)
    value = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 200) - 100);
  const double whole = sum_of(values);
  for (int round = 0; round < 10; ++round) {
    std::ranges::shuffle(values, random);
    EXPECT_EQ(sum_of(values), whole);
    ExactSum left, right;
    for (std::size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? left : right).add(values[i]);
    ExactSum::Words words = left.words();
    const ExactSum::Words others = right.words();
    for (std::size_t i = 0; i < words.size(); ++i) words[i] += others[i];
    EXPECT_EQ(ExactSum::of(words).value(), whole);
    left.add(right);
    EXPECT_EQ(left.value(), whole);
  }
}

TEST(ExactSum, IsInfiniteWhenAValueIsNotFinite) {
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isinf(sum_of({1.0, bad, 2.0})));
    ExactSum sum;
    sum.add(bad);
    EXPECT_TRUE(std::isinf(ExactSum::of(sum.words()).value()));
  }
}

}  // namespace
}  // namespace penstock
