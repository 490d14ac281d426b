// SPDX-License-Identifier: Apache-2.0
// A SentencePiece tokenizer model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace penstock::files {

class SentencePiece {
 public:
  // Throws InputError naming the file when it is missing or not a model.
  explicit SentencePiece(const std::string& path);
  // Takes a file's contents; `origin` names them in errors.
  SentencePiece(std::string_view serialized, const std::string& origin);
  ~SentencePiece();
  SentencePiece(SentencePiece&&) noexcept;

  std::int64_t vocab() const;
  std::optional<std::int32_t> end_of_text() const;

  // Any thread. Invalid UTF-8 counts as U+FFFD. `last`, if not null, gets the offset in the text of the last
  // byte of each token.
  std::vector<std::int32_t> encode(std::string_view text, std::vector<std::size_t>* last = nullptr) const;

 private:
  std::unique_ptr<sentencepiece::SentencePieceProcessor> model_;
};

}  // namespace penstock::files
