// SPDX-License-Identifier: Apache-2.0
#include "files/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"

namespace penstock::files {
namespace {

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from, ElementType from_type, ElementType to_type) {
  std::vector<To> to(from.size());
  convert_elements(std::as_bytes(std::span(from)), from_type, std::as_writable_bytes(std::span(to)), to_type);
  return to;
}

// All numbers of a 16-bit format in the order of their values, without NaN.
std::vector<std::pair<double, std::uint16_t>> numbers_of(ElementType type, std::uint16_t infinity) {
  std::vector<std::uint16_t> bits;
  for (int i = 0; i <= infinity; ++i) bits.push_back(static_cast<std::uint16_t>(i));
  const auto values = converted<double>(bits, type, ElementType::F64);
  std::vector<std::pair<double, std::uint16_t>> numbers;
  for (std::size_t i = 0; i < bits.size(); ++i) numbers.emplace_back(values[i], bits[i]);
  return numbers;
}

struct Format {
  ElementType type;
  std::uint16_t infinity;
};
constexpr Format kShort[] = {{ElementType::F16, 0x7C00}, {ElementType::BF16, 0x7F80}};

TEST(Elements, ReadsKnownNumbersOfTheShortFormats) {
  EXPECT_EQ(converted<float>(std::vector<std::uint16_t>{0x3C00, 0xC000, 0x0001, 0x7BFF, 0x8000},
                             ElementType::F16, ElementType::F32),
            (std::vector<float>{1, -2, std::ldexp(1.0f, -24), 65504, -0.0f}));
  EXPECT_EQ(converted<float>(std::vector<std::uint16_t>{0x3F80, 0xC000, 0x4049}, ElementType::BF16,
                             ElementType::F32),
            (std::vector<float>{1, -2, 3.140625f}));
}

TEST(Elements, GoToALongerFormatAndBackUnchanged) {
  for (const auto& [type, infinity] : kShort) {
    std::vector<std::uint16_t> all;
    for (const auto& [value, bits] : numbers_of(type, infinity)) {
      all.push_back(bits);
      all.push_back(static_cast<std::uint16_t>(bits | 0x8000));
    }
    for (const ElementType longer : {ElementType::F32, ElementType::F64}) {
      const auto there =
          longer == ElementType::F32 ? std::vector<double>() : converted<double>(all, type, longer);
      if (longer == ElementType::F64) {
        EXPECT_EQ(converted<std::uint16_t>(there, longer, type), all);
      } else {
        EXPECT_EQ(converted<std::uint16_t>(converted<float>(all, type, longer), longer, type), all);
      }
    }
  }
}

// Between two neighbours, to the nearer one; halfway to the even one.
TEST(Elements, RoundToTheNearestNumberAndTiesToEven) {
  for (const auto& [type, infinity] : kShort) {
    const auto numbers = numbers_of(type, infinity);
    std::vector<double> asked;
    std::vector<std::uint16_t> wanted;
    for (std::size_t i = 0; i + 2 < numbers.size(); ++i) {
      const auto [low, low_bits] = numbers[i];
      const auto [high, high_bits] = numbers[i + 1];
      const double middle = (low + high) / 2;
      for (const auto& [value, bits] : {std::pair(std::nextafter(middle, 0), low_bits),
                                        std::pair(middle, low_bits % 2 == 0 ? low_bits : high_bits),
                                        std::pair(std::nextafter(middle, HUGE_VAL), high_bits)}) {
        asked.push_back(value);
        wanted.push_back(bits);
      }
    }
    EXPECT_EQ(converted<std::uint16_t>(asked, ElementType::F64, type), wanted);
  }
}

TEST(Elements, KeepInfinitiesAndWhatIsNoNumber) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ElementType type : {ElementType::F32, ElementType::F16, ElementType::BF16}) {
    const std::vector<double> source{infinity, -infinity, std::nan(""), 1e300, -1e300};
    std::vector<std::byte> stored(source.size() * size_of(type));
    convert_elements(std::as_bytes(std::span(source)), ElementType::F64, stored, type);
    std::vector<double> back(source.size());
    convert_elements(stored, type, std::as_writable_bytes(std::span(back)), ElementType::F64);
    EXPECT_EQ(back[0], infinity);
    EXPECT_EQ(back[1], -infinity);
    EXPECT_TRUE(std::isnan(back[2]));
    EXPECT_EQ(back[3], infinity);
    EXPECT_EQ(back[4], -infinity);
  }
}

}  // namespace
}  // namespace penstock::files
