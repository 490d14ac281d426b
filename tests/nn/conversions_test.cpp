// SPDX-License-Identifier: Apache-2.0
// bf16 to f32 and back: alone, in pairs, and in the vectorised loops of kernels, against c10's conversion.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "nn/kernels/cpu/fused_exponential.h"
#include "nn/kernels/cpu/pairs.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/sum_parts.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

namespace kernels = nn::kernels;

c10::BFloat16 of_bits(std::uint32_t bits) {
  return {static_cast<std::uint16_t>(bits), c10::BFloat16::from_bits()};
}

// Every pattern of the upper half with lower halves on both sides of a tie, and random patterns: numbers,
// denormals, infinities and NaN of all kinds.
std::vector<float> floats_of_all_kinds() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  for (std::uint64_t i = 0; i < 100000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random_bits(1, i))));
  return values;
}

TEST(Conversion, EveryBf16BecomesItsF32AndComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const std::array<c10::BFloat16, 2> pair{of_bits(bits), of_bits(65535 - bits)};
    const auto [even, odd] = kernels::pair_at(pair.data(), 0);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(even), bits << 16);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(odd), (65535 - bits) << 16);
    const std::uint32_t wanted = std::isnan(even) ? 0x7FC0u : bits;
    EXPECT_EQ(kernels::narrowed<c10::BFloat16>(even).x, wanted);
    EXPECT_EQ(kernels::word_of(even, 1.0f), wanted | 0x3F800000u);
    EXPECT_EQ(kernels::word_of(1.0f, even), wanted << 16 | 0x3F80u);
    // NaN of every payload stays what it is.
    EXPECT_EQ(kernels::word_of_narrow(even, 1.0f), bits | 0x3F800000u);
    EXPECT_EQ(kernels::word_of_narrow(1.0f, even), bits << 16 | 0x3F80u);
  }
}

TEST(Conversion, RoundsAsC10Does) {
  for (const float value : floats_of_all_kinds()) {
    const std::uint32_t wanted = c10::BFloat16(value).x;
    ASSERT_EQ(kernels::narrowed<c10::BFloat16>(value).x, wanted) << std::bit_cast<std::uint32_t>(value);
    ASSERT_EQ(kernels::word_of(value, -value) & 0xFFFFu, wanted);
    ASSERT_EQ(kernels::word_of(-value, value) >> 16, wanted);
    if (value == value) {
      ASSERT_EQ(kernels::word_of_narrow(-value, value), kernels::word_of(-value, value));
    }
  }
}

TEST(Conversion, VectorisedLoopsRoundAsC10Does) {
  const std::vector<float> values = floats_of_all_kinds();
  at::Tensor from = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), from.data_ptr<float>());
  const std::array<at::Tensor, 1> parts{from};
  const at::Tensor rounded = kernels::sum_parts(parts, at::kBFloat16);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(rounded.data_ptr<c10::BFloat16>()[i].x, c10::BFloat16(values[i]).x) << i;
}

// The sum with which a norm begins is the plainest loop over pairs; rows of odd length end with one element.
// NaN has other bits.
TEST(Conversion, LoopsOverPairsRoundAsC10Does) {
  for (const std::int64_t h : {1, 2, 31, 32, 33, 65, 129, 4096}) {
    const std::int64_t rows = (65536 + h - 1) / h;
    at::Tensor x = at::empty({rows, h}, at::kBFloat16), branch = at::empty({rows, h}, at::kBFloat16), sum;
    auto *a = x.data_ptr<c10::BFloat16>(), *b = branch.data_ptr<c10::BFloat16>();
    for (std::int64_t i = 0; i < rows * h; ++i) {
      a[i] = of_bits(static_cast<std::uint32_t>(i));
      b[i] = of_bits(static_cast<std::uint32_t>(random_bits(2, static_cast<std::uint64_t>(i))));
    }
    kernels::rms_norm_of_sum(x, branch, at::ones({h}, at::kBFloat16), 1e-5, sum);
    for (std::int64_t i = 0; i < rows * h; ++i) {
      const c10::BFloat16 wanted(static_cast<float>(a[i]) + static_cast<float>(b[i]));
      const c10::BFloat16 found = sum.data_ptr<c10::BFloat16>()[i];
      ASSERT_TRUE(found.x == wanted.x ||
                  (std::isnan(static_cast<float>(found)) && std::isnan(static_cast<float>(wanted))))
          << a[i].x << " + " << b[i].x;
    }
  }
}

TEST(Sum, HasTheOrderOfItsLengthAlone) {
  for (const std::int64_t count : {1, 2, 3, 63, 64, 65, 127, 130, 777}) {
    const at::Tensor x = random_tensor({count}, at::kBFloat16, 3);
    const auto* from = x.const_data_ptr<c10::BFloat16>();
    const auto square = [](float value) { return value * value; };
    // By hand: 32 sums of even and 32 of odd places, added in halves.
    std::array<float, 64> parts{};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = i % 64, pair = place / 2;
      const bool last_alone = i + 1 == count && count % 2 != 0;
      parts[place % 2 == 0 || last_alone ? pair : 32 + pair] += square(static_cast<float>(from[i]));
    }
    for (int half = 32; half > 0; half /= 2) {
      for (int part = 0; part < half; ++part) parts[part] += parts[half + part];
    }
    EXPECT_EQ(kernels::sum_of<float>(count, square, from), parts[0]) << count;
  }
}

TEST(FastExponential, IsAsAccurateAsItSays) {
  for (double x = -86.9; x < 86.9; x += 0.00037) {
    const auto rounded = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(rounded));
    EXPECT_NEAR(kernels::fast_exponential<float>(rounded) / exact, 1.0, 2 * 1.2e-7) << rounded;
    // The argument's product with log2 e is rounded too.
    EXPECT_NEAR(kernels::fast_exponential<c10::BFloat16>(rounded) / exact, 1.0, 4e-6 + 1e-7 * std::abs(x));
  }
  for (const float far : {100.0f, 1e30f, std::numeric_limits<float>::infinity()}) {
    EXPECT_GT(kernels::fast_exponential<float>(far), 5e37f);
    EXPECT_GT(kernels::fast_exponential<c10::BFloat16>(far), 5e37f);
    EXPECT_LT(kernels::fast_exponential<float>(-far), 2e-38f);
    EXPECT_LT(kernels::fast_exponential<c10::BFloat16>(-far), 2e-38f);
    EXPECT_LT(kernels::exponential_below<c10::BFloat16>(-far, 3.0f), 2e-38f);
  }
  EXPECT_NEAR(kernels::exponential_below<c10::BFloat16>(3.0f, 3.0f), 1.0f, 1e-6f);
}

}  // namespace
}  // namespace penstock::testing
