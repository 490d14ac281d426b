// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace penstock {
namespace {

constexpr int kRounds = 4;

// Half the bits of the smallest power of four not below `size`.
int half_of(std::uint64_t size) {
  const int bits = size > 1 ? static_cast<int>(std::bit_width(size - 1)) : 0;
  return std::max(1, (bits + 1) / 2);
}

}  // namespace

std::uint64_t hash(std::string_view text) {
  std::uint64_t state = 0xCBF29CE484222325ull;
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return mix(state);
}

std::uint64_t stream_key(std::uint64_t a, std::uint64_t b) { return mix(mix(a + kGolden) ^ b); }

Permutation::Permutation(std::uint64_t size, std::uint64_t key)
    : size_(size), key_(key), half_bits_(half_of(size)) {}

std::uint64_t Permutation::walk(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (random_bits(key_ + static_cast<std::uint64_t>(round), right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t Permutation::at(std::uint64_t index) const {
  PENSTOCK_CHECK(index < size_, "a permutation maps only the numbers below its size");
  do {
    index = walk(index);
  } while (index >= size_);
  return index;
}

}  // namespace penstock
