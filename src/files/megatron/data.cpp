// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/data.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {
namespace {

template <class T>
void widen(const std::byte* source, std::span<std::int64_t> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    T token;
    std::memcpy(&token, source + i * sizeof token, sizeof token);
    tokens[i] = static_cast<std::int64_t>(token);
  }
}

void widen(TokenType type, const std::byte* source, std::span<std::int64_t> tokens) {
  switch (type) {
    case TokenType::U8:
      return widen<std::uint8_t>(source, tokens);
    case TokenType::I8:
      return widen<std::int8_t>(source, tokens);
    case TokenType::I16:
      return widen<std::int16_t>(source, tokens);
    case TokenType::I32:
      return widen<std::int32_t>(source, tokens);
    case TokenType::I64:
      return widen<std::int64_t>(source, tokens);
    case TokenType::U16:
      return widen<std::uint16_t>(source, tokens);
  }
}

}  // namespace

MegatronData::MegatronData(const std::string& prefix)
    : prefix_(prefix),
      bin_(prefix + ".bin"),
      idx_(prefix + ".idx"),
      index_(idx_.bytes(), bin_.bytes().size(), printable(prefix, 500) + ".idx") {}

void MegatronData::read(std::int64_t first, std::span<std::int64_t> tokens, std::int64_t vocab) const {
  index_.check_tokens(first, static_cast<std::int64_t>(tokens.size()));
  const std::int64_t size = size_of(index_.type());
  widen(index_.type(), bin_.bytes().data() + first * size, tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    throw InputError(printable(prefix_, 500) + ".bin: token " + std::to_string(tokens[i]) + " at byte " +
                     std::to_string((first + static_cast<std::int64_t>(i)) * size) +
                     " is outside the vocabulary; expected 0 to " + std::to_string(vocab - 1));
  }
}

}  // namespace penstock::files
