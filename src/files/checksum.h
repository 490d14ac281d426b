// SPDX-License-Identifier: Apache-2.0
// Checksums that find damage, not malice: xxHash's XXH3 of 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

std::uint64_t checksum(std::span<const std::byte> bytes);
inline std::uint64_t checksum(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

// 16 hexadecimal digits, and back; nothing when the text is not exactly that.
std::string checksum_text(std::uint64_t sum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace penstock::files
