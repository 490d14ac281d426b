// SPDX-License-Identifier: Apache-2.0
// Text as tokens: every byte is one, and three more have no text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::train {

inline constexpr std::int64_t kBeginOfText = 256;
inline constexpr std::int64_t kEndOfText = 257;
inline constexpr std::int64_t kPadding = 258;
inline constexpr std::int64_t kByteVocabulary = 259;

std::vector<std::int64_t> encode_bytes(std::string_view text);

// Tokens without text, and ids beyond the vocabulary, leave nothing.
std::string decode_bytes(const std::vector<std::int64_t>& tokens);

}  // namespace penstock::train
