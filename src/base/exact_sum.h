// SPDX-License-Identifier: Apache-2.0
// The exact sum of non-negative numbers: the same bits in any order and for any distribution of the numbers
// over ranks whose sums are added (Kulisch 1971: a fixed-point register of the whole range).
#pragma once

#include <array>
#include <cstdint>

namespace penstock {

class ExactSum {
 public:
  // 32 bits of the register per limb, from 2^-1074 up. The last word counts non-finite values.
  static constexpr int kLimbs = 67;
  using Words = std::array<std::int64_t, kLimbs + 1>;

  // `value` ≥ 0, infinite or NaN.
  void add(double value);
  void add(const ExactSum& other);

  // Rounded to double; infinity if any value was not finite.
  double value() const;

  // For sums across ranks: up to 2^30 of these may be added word by word.
  Words words() const;
  static ExactSum of(const Words& words);

 private:
  void carry();

  std::array<std::uint64_t, kLimbs> limbs_{};
  std::int64_t not_finite_ = 0;
  std::uint32_t added_ = 0;  // since the last carry
};

}  // namespace penstock
