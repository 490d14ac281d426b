// SPDX-License-Identifier: Apache-2.0
#include "files/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>

namespace penstock::files {
namespace {

constexpr std::size_t kDigits = 16;

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string checksum_text(std::uint64_t sum) {
  std::string text(kDigits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, sum >>= 4) {
    *digit = "0123456789abcdef"[sum & 15];
  }
  return text;
}

std::optional<std::uint64_t> parse_checksum(std::string_view text) {
  std::uint64_t sum = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sum, 16);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text.size() == kDigits;
  return whole ? std::optional(sum) : std::nullopt;
}

}  // namespace penstock::files
