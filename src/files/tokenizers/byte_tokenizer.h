// SPDX-License-Identifier: Apache-2.0
// Byte-level tokenizer: one token per byte, and three special tokens without text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::files {

inline constexpr std::int64_t kBeginOfText = 256;
inline constexpr std::int64_t kEndOfText = 257;
inline constexpr std::int64_t kPadding = 258;
inline constexpr std::int64_t kByteVocabulary = 259;

std::vector<std::int64_t> encode_bytes(std::string_view text);

// Skips special tokens and ids outside the vocabulary.
std::string decode_bytes(const std::vector<std::int64_t>& tokens);

}  // namespace penstock::files
