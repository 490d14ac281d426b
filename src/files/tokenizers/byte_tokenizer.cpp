// SPDX-License-Identifier: Apache-2.0
#include "files/tokenizers/byte_tokenizer.h"

namespace penstock::files {

std::vector<std::int64_t> encode_bytes(std::string_view text) {
  std::vector<std::int64_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string decode_bytes(const std::vector<std::int64_t>& tokens) {
  std::string text;
  for (const std::int64_t token : tokens) {
    if (token >= 0 && token < kBeginOfText) text += static_cast<char>(token);
  }
  return text;
}

}  // namespace penstock::files
