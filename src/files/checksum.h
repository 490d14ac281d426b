// SPDX-License-Identifier: Apache-2.0
// Checksums that detect damage, not tampering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

class InputFile;

// xxHash's 64-bit XXH3, for texts and headers.
std::uint64_t checksum(std::span<const std::byte> bytes);
inline std::uint64_t checksum(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

// For tensors, which several processes write in parts: Σ wᵢ·rⁱ modulo 2⁶¹ − 1 over the little-endian 4-byte
// words wᵢ (Karp and Rabin 1987), r a fixed generator of the field's units. Detects every change within one
// word and every swap of two words. `first_word` is the word offset of the bytes in the whole, so that
// checksums of word-aligned parts add up to that of the whole. An incomplete last word is padded with zeros.
std::uint64_t word_sum(std::span<const std::byte> bytes, std::uint64_t first_word = 0);
std::uint64_t add_word_sums(std::uint64_t a, std::uint64_t b);

// The sum of `bytes` bytes of a file from `begin` on. Throws InputError where they cannot be read.
std::uint64_t word_sum(InputFile& file, std::uint64_t begin, std::uint64_t bytes);

inline constexpr std::string_view kWordSum = "words of 32 bits, polynomial modulo 2^61-1";

// 16 hexadecimal digits, and back; nullopt for other texts.
std::string checksum_text(std::uint64_t sum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace penstock::files
