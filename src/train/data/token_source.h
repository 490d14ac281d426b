// SPDX-License-Identifier: Apache-2.0
// A sequence of tokens, from any source.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace penstock::train {

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual std::int64_t size() const = 0;  // tokens

  // Reads the tokens `first`, first + 1, ..., which must all exist. Throws InputError that names the file and
  // the offset if one is outside the vocabulary or the file is damaged there.
  virtual void read(std::int64_t first, std::span<std::int64_t> tokens) const = 0;

  // For each of the tokens `first`, first + 1, ...: the first token of its document. Errors as above.
  virtual void document_starts(std::int64_t first, std::span<std::int64_t> starts) const = 0;

  // For each of the same tokens: 1 if it is a target, 0 if it is only read. Errors as above.
  virtual void in_loss(std::int64_t first, std::span<char> in_loss) const = 0;

  // The ends of the documents in the tokens [begin, end), the last one at most `end`. Errors as above.
  virtual std::vector<std::int64_t> document_ends(std::int64_t begin, std::int64_t end) const = 0;

  virtual std::int64_t documents() const = 0;  // including empty ones

  // The end of the first `share` of the documents, rounded to whole documents. A text is one document.
  virtual std::int64_t end_of_documents(double share) const = 0;
};

// The bytes of a text, owned by the caller.
std::unique_ptr<TokenSource> tokens_of_text(std::string_view text);

// Documents of these lengths, all above 0, whose tokens are 0.
std::unique_ptr<TokenSource> tokens_of_lengths(std::span<const Tokens> lengths);

// A pair of .bin and .idx files of Megatron. Unless `masks_loss`, all tokens are targets and PREFIX.mask is
// not opened. Throws InputError as files::MegatronData does.
std::unique_ptr<TokenSource> tokens_of_megatron(const std::string& prefix, std::int64_t vocab,
                                                bool masks_loss);

}  // namespace penstock::train
