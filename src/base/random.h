// SPDX-License-Identifier: Apache-2.0
// Stateless random numbers: value i of a stream is a function of the stream's key and i, so any rank can
// generate any part of any tensor, in any order, with the same bits. Integers are the same on every machine;
// normal() uses the standard library's logarithm and cosine, whose last digit may differ between C libraries.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock {

// SplitMix64's finaliser (Steele, Lea and Flood 2014): a bijection whose output bits all depend on all input
// bits.
std::uint64_t mix(std::uint64_t value);

std::uint64_t hash(std::string_view text);  // FNV-1a, mixed

// Combines two keys, as in stream_key(seed, hash(name)); the order matters.
std::uint64_t stream_key(std::uint64_t a, std::uint64_t b);

std::uint64_t random_bits(std::uint64_t key,
                          std::uint64_t index);          // the index-th output of SplitMix64 seeded with key
double uniform(std::uint64_t key, std::uint64_t index);  // in [0, 1), 53 random bits
double normal(std::uint64_t key, std::uint64_t index);   // mean 0, variance 1 (Box and Muller)

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
