// SPDX-License-Identifier: Apache-2.0
// The key of an action or op: one slice of one micro-batch in one stage.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace penstock::schedule {

// Stages are numbered across the whole model, slices within a micro-batch; an unsliced micro-batch has only
// slice 0. Members that follow a `[[no_unique_address]] Key` use its two bytes of padding.
struct Key {
  std::int32_t stage = 0;
  std::int32_t micro_batch = 0;
  std::int16_t slice = 0;

  constexpr Key at_stage(std::int32_t other) const { return {other, micro_batch, slice}; }
  friend auto operator<=>(const Key&, const Key&) = default;
};

constexpr Key make_key(int stage, int micro_batch = 0, int slice = 0) {
  return {stage, micro_batch, static_cast<std::int16_t>(slice)};
}

// For hashing: packed() puts the numbers next to each other, scattered() spreads them over all bits.
constexpr std::uint64_t packed(const Key& key) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.stage)) << 32 |
          static_cast<std::uint32_t>(key.micro_batch)) ^
         static_cast<std::uint64_t>(static_cast<std::uint16_t>(key.slice)) << 24;
}
constexpr std::size_t scattered(std::uint64_t packed) {
  packed *= 0x9E3779B97F4A7C15ull;
  return static_cast<std::size_t>(packed ^ packed >> 29);
}

}  // namespace penstock::schedule

template <>
struct std::hash<penstock::schedule::Key> {
  std::size_t operator()(const penstock::schedule::Key& key) const noexcept {
    return penstock::schedule::scattered(packed(key));
  }
};
