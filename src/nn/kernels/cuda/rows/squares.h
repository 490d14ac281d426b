// SPDX-License-Identifier: Apache-2.0
// Sums of squares: units of 64 elements, added exactly (kernels/square_sum.h).
#pragma once

#include "nn/kernels/cuda/rows/packs.h"

namespace penstock::nn::kernels::cuda {

// Row b of `parts`: the units b, b + parts, ..., one lane per unit. Adds their sums to a fixed-point register
// with 32 bits per limb (base/exact_sum.h), exact in any order, and the register to row b of `words`.
template <class Number, int kWidth>
struct SquareParts {
  static constexpr int kLanes = kBlock;
  static constexpr std::int64_t kUnit = 64;
  static constexpr int kLimbs = 67;
  static constexpr int kWords = kLimbs + 1;  // the last counts sums that are not finite

  const Number* values;
  unsigned long long* words;  // [parts, kWords], in and out
  std::int64_t count, parts;

  std::int64_t scratch_bytes() const { return kWords * static_cast<std::int64_t>(sizeof(*words)); }

  PENSTOCK_BOTH void operator()(const Lanes<kLanes>& lanes, std::int64_t part) const {
    auto* sum = lanes.template scratch<unsigned long long>();
    lanes.each(kWords, [&](std::int64_t i) { sum[i] = 0; });
    lanes.wait();
    const std::int64_t units = (count + kUnit - 1) / kUnit;
    const std::int64_t own = part < units ? (units - part - 1) / parts + 1 : 0;
    lanes.each(own, [&](std::int64_t i) { add(lanes, sum, of_unit(part + i * parts)); });
    lanes.wait();
    lanes.each(kWords, [&](std::int64_t i) { words[part * kWords + i] += sum[i]; });
  }

 private:
  // Sum of squares of one unit, in f64 with eight partial sums, as in cpu/square_sum.cpp.
  PENSTOCK_BOTH double of_unit(std::int64_t unit) const {
    constexpr int kSums = 8;
    const Number* x = values + unit * kUnit;
    const std::int64_t length = kUnit < count - unit * kUnit ? kUnit : count - unit * kUnit;
    const std::int64_t whole = length / kSums * kSums;
    double sums[kSums] = {};
    for (std::int64_t first = 0; first < whole; first += kSums) {
      for (int pack = 0; pack < kSums / kWidth; ++pack) {
        const auto numbers = load<kWidth>(x, first / kWidth + pack);
        for (int i = 0; i < kWidth; ++i) {
          const double number = numbers.values[i];
          sums[pack * kWidth + i] += number * number;
        }
      }
    }
    double sum = 0;
    for (const double part : sums) sum += part;
    for (std::int64_t i = whole; i < length; ++i) sum += double(x[i]) * double(x[i]);
    return sum;
  }

  // Like ExactSum::add().
  PENSTOCK_BOTH static void add(const Lanes<kLanes>& lanes, unsigned long long* limbs, double value) {
    constexpr int kMantissa = 52, kLimb = 32;
    constexpr unsigned long long kMask = 0xFFFFFFFFull;
    unsigned long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    const int exponent = static_cast<int>(bits >> kMantissa & 0x7FF);
    if (exponent == 0x7FF) return lanes.add(limbs + kLimbs, 1);
    unsigned long long mantissa = bits & ((1ull << kMantissa) - 1);
    if (exponent > 0) mantissa |= 1ull << kMantissa;
    const int place = exponent > 0 ? exponent - 1 : 0;
    const int limb = place / kLimb, shift = place % kLimb;
    const unsigned long long low = (mantissa & kMask) << shift, high = (mantissa >> kLimb) << shift;
    lanes.add(limbs + limb, low & kMask);
    lanes.add(limbs + limb + 1, (low >> kLimb) + (high & kMask));
    if (limb + 2 < kLimbs) lanes.add(limbs + limb + 2, high >> kLimb);
  }
};

}  // namespace penstock::nn::kernels::cuda
