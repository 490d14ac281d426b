// SPDX-License-Identifier: Apache-2.0
#include "files/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "files/input_file.h"

namespace penstock::files {
namespace {

constexpr std::size_t kDigits = 16;

__extension__ using Wide = unsigned __int128;
using Word = std::uint32_t;
constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kGenerator = 0x17d9f5c46630b61;
constexpr std::size_t kBlock = 256;  // words between two reductions; fewer than 2^35 products fit a Wide
constexpr std::size_t kLanes = 4;    // independent sums, for instruction-level parallelism

constexpr std::uint64_t reduced(Wide value) {
  value = (value & kPrime) + (value >> 61);
  value = (value & kPrime) + (value >> 61);
  const auto rest = static_cast<std::uint64_t>(value);
  return rest >= kPrime ? rest - kPrime : rest;
}

constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) { return reduced(Wide{a} * b); }

constexpr std::array<std::uint64_t, kBlock + 1> kPowers = [] {
  std::array<std::uint64_t, kBlock + 1> powers{1};
  for (std::size_t i = 1; i <= kBlock; ++i) powers[i] = product(powers[i - 1], kGenerator);
  return powers;
}();

std::uint64_t power(std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (std::uint64_t square = kGenerator; exponent > 0; exponent >>= 1, square = product(square, square)) {
    if (exponent & 1) result = product(result, square);
  }
  return result;
}

std::uint64_t block_sum(const std::byte* bytes, std::size_t words) {
  std::array<Wide, kLanes> lanes{};
  const auto add = [&](std::size_t lane, std::size_t i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    lanes[lane] += Wide{kPowers[i]} * word;
  };
  std::size_t i = 0;
  for (; i + kLanes <= words; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(lane, i + lane);
  }
  for (; i < words; ++i) add(0, i);
  return reduced(lanes[0] + lanes[1] + lanes[2] + lanes[3]);
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t word_sum(std::span<const std::byte> bytes, std::uint64_t first_word) {
  std::uint64_t sum = 0, scale = power(first_word);
  const auto add = [&](const std::byte* begin, std::size_t words) {
    sum = add_word_sums(sum, product(block_sum(begin, words), scale));
    scale = product(scale, kPowers[words]);
  };
  while (bytes.size() >= sizeof(Word)) {
    const std::size_t words = std::min(bytes.size() / sizeof(Word), kBlock);
    add(bytes.data(), words);
    bytes = bytes.subspan(words * sizeof(Word));
  }
  std::array<std::byte, sizeof(Word)> last{};
  std::ranges::copy(bytes, last.begin());
  if (!bytes.empty()) add(last.data(), 1);
  return sum;
}

std::uint64_t add_word_sums(std::uint64_t a, std::uint64_t b) { return reduced(Wide{a} + b); }

std::uint64_t word_sum(InputFile& file, std::uint64_t begin, std::uint64_t bytes) {
  std::uint64_t sum = 0, words = 0;
  file.read(begin, bytes, [&](std::span<const std::byte> piece) {  // all but the last are of whole words
    sum = add_word_sums(sum, word_sum(piece, words));
    words += piece.size() / sizeof(Word);
  });
  return sum;
}

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
