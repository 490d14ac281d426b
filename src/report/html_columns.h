// SPDX-License-Identifier: Apache-2.0
// Columns of integers as short text: each value as a base-128 varint, low bits first (negative ones
// zigzagged), the bytes as base64. assets/decode.js reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::report {

class Columns {
 public:
  void add(std::uint64_t value);
  void add_signed(std::int64_t value);  // 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
  // Adds each value as its difference from the one before (the first from 0); a difference of 0 is followed
  // by the number of further zeros.
  void add_differences(std::span<const std::int64_t> values);
  void add_byte(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  std::string base64() const;

 private:
  std::string bytes_;
};

std::string base64(std::string_view bytes);

}  // namespace penstock::report
