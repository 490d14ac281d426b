// SPDX-License-Identifier: Apache-2.0
#include "files/elements.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace penstock::files {
namespace {

// One struct per format: the type of its bits, and how to read and write its numbers.
struct Double {
  static constexpr double kLargest = DBL_MAX;
  using Bits = std::uint64_t;
  static double read(Bits bits) { return std::bit_cast<double>(bits); }
  static Bits write(double value) { return std::bit_cast<Bits>(value); }
};

struct Single {
  static constexpr double kLargest = FLT_MAX;
  using Bits = std::uint32_t;
  static double read(Bits bits) { return std::bit_cast<float>(bits); }
  static Bits write(double value) { return std::bit_cast<Bits>(static_cast<float>(value)); }
};

// The nearest number with fewer significand bits and a narrower exponent, as sign, exponent and fraction.
template <int kExponentBits, int kFractionBits>
std::uint16_t rounded(double value) {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr int kLeastExponent = 1 - kBias;
  constexpr std::uint16_t kInfinity = ((1u << kExponentBits) - 1) << kFractionBits;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000u : 0u);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | kInfinity | 1u << (kFractionBits - 1));
  const double size = std::fabs(value);
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | kInfinity);
  // In units of the last place, which are constant below the least exponent; nearbyint rounds ties to even.
  const int exponent = size == 0 ? kLeastExponent : std::max(std::ilogb(size), kLeastExponent);
  const double units = std::nearbyint(std::ldexp(size, kFractionBits - exponent));
  const auto carried = static_cast<std::uint64_t>(units) +
                       (static_cast<std::uint64_t>(exponent - kLeastExponent) << kFractionBits);
  return static_cast<std::uint16_t>(sign | std::min<std::uint64_t>(carried, kInfinity));
}

double half_number(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return std::copysign(size, bits & 0x8000 ? -1.0 : 1.0);
}

struct Half {
  static constexpr double kLargest = 65504;
  using Bits = std::uint16_t;
  static double read(Bits bits) {
    static const std::vector<float> all = [] {
      std::vector<float> numbers(1 << 16);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<float>(half_number(static_cast<Bits>(i)));
      return numbers;
    }();
    return all[bits];
  }
  static Bits write(double value) { return rounded<5, 10>(value); }
};

struct Brain {
  static constexpr double kLargest = 0x1.FEp127;
  using Bits = std::uint16_t;
  static double read(Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static Bits write(double value) {
    const auto single = static_cast<float>(value);
    if (static_cast<double>(single) != value) return rounded<8, 7>(value);
    // The upper half, plus one when the lower half exceeds one half, or equals it and the upper half is odd.
    const auto bits = std::bit_cast<std::uint32_t>(single);
    return static_cast<Bits>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
};

template <class Work>
void for_format(ElementType type, Work&& work) {
  if (type == ElementType::F64) return work(Double{});
  if (type == ElementType::F32) return work(Single{});
  if (type == ElementType::F16) return work(Half{});
  PENSTOCK_CHECK(type == ElementType::BF16, "elements are converted between floating-point formats");
  work(Brain{});
}

}  // namespace

bool is_float(ElementType type) {
  return type == ElementType::F64 || type == ElementType::F32 || type == ElementType::F16 ||
         type == ElementType::BF16;
}

std::size_t convert_elements(std::span<const std::byte> source, ElementType source_type,
                             std::span<std::byte> target, ElementType target_type) {
  const std::size_t count = source.size() / size_of(source_type);
  PENSTOCK_CHECK(target.size() == count * size_of(target_type), "as many elements in both");
  if (source_type == target_type) {
    if (count > 0) std::memcpy(target.data(), source.data(), source.size());
    return 0;
  }
  std::size_t lost = 0;
  for_format(source_type, [&]<class From>(From) {
    for_format(target_type, [&]<class To>(To) {
      for (std::size_t i = 0; i < count; ++i) {
        typename From::Bits from;
        std::memcpy(&from, source.data() + i * sizeof from, sizeof from);
        const double value = From::read(from);
        const typename To::Bits to = To::write(value);
        if constexpr (To::kLargest < From::kLargest) lost += std::isfinite(value) && std::isinf(To::read(to));
        std::memcpy(target.data() + i * sizeof to, &to, sizeof to);
      }
    });
  });
  return lost;
}

}  // namespace penstock::files
