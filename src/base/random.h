// SPDX-License-Identifier: Apache-2.0
// Stateless random numbers: value i of a stream is a function of the stream's key and i, so any rank can
// generate any part of any tensor, in any order, with the same bits on every machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/normal.h"

namespace penstock {

// SplitMix64's finaliser (Steele, Lea and Flood 2014): a bijection whose output bits all depend on all input
// bits.
inline std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ value >> 27) * 0x94D049BB133111EBull;
  return value ^ value >> 31;
}

std::uint64_t hash(std::string_view text);  // FNV-1a, mixed

// Combines two keys, as in stream_key(seed, hash(name)); the order matters.
std::uint64_t stream_key(std::uint64_t a, std::uint64_t b);

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;  // 2^64 over the golden ratio

// The index-th output of SplitMix64 seeded with key.
inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t index) {
  return mix(key + (index + 1) * kGolden);
}

// In [0, 1), 53 random bits.
inline double uniform(std::uint64_t key, std::uint64_t index) {
  return unit_interval(random_bits(key, index));
}

// Mean 0, variance 1.
inline double normal(std::uint64_t key, std::uint64_t index) {
  return normal_number(random_bits(key, 2 * index), random_bits(key, 2 * index + 1));
}

// A permutation of 0..size-1 in constant memory: a Feistel network over the next power of four, iterated
// until the value is in range (Black and Rogaway 2002). at() is a bijection of 0..size-1 and needs fewer than
// four iterations on average.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t key);
  std::uint64_t size() const { return size_; }
  std::uint64_t at(std::uint64_t index) const;  // index < size

 private:
  std::uint64_t walk(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_;
};

}  // namespace penstock
