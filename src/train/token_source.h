// SPDX-License-Identifier: Apache-2.0
// Tokens in a row, wherever they come from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace penstock::train {

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual std::int64_t size() const = 0;  // tokens

  // Tokens `first`, first + 1, ..., all of which exist. Throws InputError that names the file and the offset
  // when one is outside the vocabulary or the file is damaged there.
  virtual void read(std::int64_t first, std::span<std::int64_t> tokens) const = 0;

  // The token before which the given share of the documents ends, rounded to whole ones. A text is one.
  virtual std::int64_t end_of_documents(double share) const = 0;
};

// The bytes of a text, which the caller keeps.
std::unique_ptr<TokenSource> tokens_of_text(std::string_view text);

// A pair of .bin and .idx files of Megatron. Throws InputError as files::MegatronData does.
std::unique_ptr<TokenSource> tokens_of_megatron(const std::string& prefix, std::int64_t vocab);

}  // namespace penstock::train
