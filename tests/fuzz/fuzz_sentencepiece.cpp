// SPDX-License-Identifier: Apache-2.0
// Tokenizer models of SentencePiece, and a text's tokens.
#include <stdexcept>

#include "files/tokenizers/sentencepiece.h"
#include "fuzz/driver.h"

namespace penstock::files {
namespace {

void take(std::string_view input) {
  const SentencePiece model(input, "fuzz");
  for (const std::int32_t id : model.encode("The cat\n  sat on \xEF\xBC\xA1 mat \xFF.")) {
    if (id < 0 || id >= model.vocab()) throw std::logic_error("a token outside of the vocabulary");
  }
}

}  // namespace
}  // namespace penstock::files

int main(int argc, char** argv) { return penstock::fuzz::fuzz_main(argc, argv, penstock::files::take); }
