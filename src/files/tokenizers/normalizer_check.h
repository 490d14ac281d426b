// SPDX-License-Identifier: Apache-2.0
// Checks of a tokenizer model that SentencePiece lacks: it follows the double-array trie of the normalizer's
// precompiled_charsmap without bounds checks, so a damaged model makes it read arbitrary memory.
#pragma once

#include <string>
#include <string_view>

namespace penstock::files {

// `model`: a serialized ModelProto (protobuf). Call before SentencePiece loads it, since loading encodes the
// model's own samples. Throws InputError that begins with `origin` if it is not a protobuf message, or a trie
// leads out of itself, out of the texts behind it, or past more leaves than SentencePiece has room for.
void check_normalizers(std::string_view model, const std::string& origin);

}  // namespace penstock::files
