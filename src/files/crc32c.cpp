// SPDX-License-Identifier: Apache-2.0
#include "files/crc32c.h"

#include <array>

namespace penstock::files {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bit-reversed

constexpr std::array<std::uint32_t, 256> kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t rest = ~0u;
  for (const char byte : bytes) rest = rest >> 8 ^ kTable[(rest ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~rest;
}

}  // namespace penstock::files
