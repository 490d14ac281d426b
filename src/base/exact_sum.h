// SPDX-License-Identifier: Apache-2.0
// The exact sum of numbers that are not negative: the same bits in any order, and however the numbers are
// shared out over ranks whose sums are added (Kulisch 1971: a fixed-point register of the whole range).
#pragma once

#include <array>
#include <cstdint>

namespace penstock {

class ExactSum {
 public:
  // 32 bits of the register each, from 2^-1074 up, then a count of values that are not finite.
  static constexpr int kLimbs = 67;
  using Words = std::array<std::int64_t, kLimbs + 1>;

  // `value` ≥ 0, infinite or NaN.
  void add(double value);
  void add(const ExactSum& other);

  // Rounded to double; infinite when a value was not finite.
  double value() const;

  // For an addition elsewhere: word by word, of at most 2^30 sums.
  Words words() const;
  static ExactSum of(const Words& words);

 private:
  void carry();

  std::array<std::uint64_t, kLimbs> limbs_{};
  std::int64_t not_finite_ = 0;
  std::uint32_t added_ = 0;  // since the last carry
};

}  // namespace penstock
