// SPDX-License-Identifier: Apache-2.0
#include "base/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

constexpr int kLimbBits = 32;
constexpr int kMantissaBits = 52;
constexpr int kLeastExponent = -1074;  // exponent of the last bit of the smallest double
constexpr std::uint64_t kLimbMask = 0xFFFFFFFF;
constexpr std::uint32_t kCarryAfter = 1u << 30;  // 64 bits hold this many addends below 2^33

}  // namespace

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> kMantissaBits & 0x7FF);
  if (exponent == 0x7FF) {
    ++not_finite_;
    return;
  }
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  if (exponent > 0) mantissa |= std::uint64_t{1} << kMantissaBits;
  const int place = exponent > 0 ? exponent - 1 : 0;  // of the last bit, from kLeastExponent
  const int limb = place / kLimbBits, shift = place % kLimbBits;
  const std::uint64_t low = (mantissa & kLimbMask) << shift, high = (mantissa >> kLimbBits) << shift;
  limbs_[limb] += low & kLimbMask;
  limbs_[limb + 1] += (low >> kLimbBits) + (high & kLimbMask);
  if (limb + 2 < kLimbs) limbs_[limb + 2] += high >> kLimbBits;
  if (++added_ == kCarryAfter) carry();
}

void ExactSum::add(const ExactSum& other) {
  ExactSum addend = other;
  addend.carry();
  carry();
  for (int i = 0; i < kLimbs; ++i) limbs_[i] += addend.limbs_[i];
  not_finite_ += other.not_finite_;
  carry();
}

// The last limb holds what exceeds the range of a double.
void ExactSum::carry() {
  for (int i = 0; i + 1 < kLimbs; ++i) {
    limbs_[i + 1] += limbs_[i] >> kLimbBits;
    limbs_[i] &= kLimbMask;
  }
  added_ = 0;
}

double ExactSum::value() const {
  if (not_finite_ > 0) return std::numeric_limits<double>::infinity();
  ExactSum sum = *this;
  sum.carry();
  int top = kLimbs - 1;
  while (top > 0 && sum.limbs_[top] == 0) --top;
  // The highest limbs, with a sticky last bit for the rest: enough to round once.
  unsigned __int128 head = 0;
  const int least = std::max(top - 2, 0);
  for (int i = top; i >= least; --i) head = head << kLimbBits | sum.limbs_[i];
  bool rest = false;
  for (int i = 0; i < least; ++i) rest = rest || sum.limbs_[i] != 0;
  if (rest) head |= 1;
  return std::ldexp(static_cast<double>(head), kLeastExponent + kLimbBits * least);
}

ExactSum::Words ExactSum::words() const {
  ExactSum sum = *this;
  sum.carry();
  Words words{};
  for (int i = 0; i < kLimbs; ++i) words[i] = static_cast<std::int64_t>(sum.limbs_[i]);
  words[kLimbs] = not_finite_;
  return words;
}

ExactSum ExactSum::of(const Words& words) {
  ExactSum sum;
  for (int i = 0; i < kLimbs; ++i) sum.limbs_[i] = static_cast<std::uint64_t>(words[i]);
  sum.not_finite_ = words[kLimbs];
  sum.carry();
  return sum;
}

}  // namespace penstock
