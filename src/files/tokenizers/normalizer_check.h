// SPDX-License-Identifier: Apache-2.0
// What SentencePiece does not check of a tokenizer model: it follows the double-array trie of the
// normalizer's precompiled_charsmap without looking where it leads, so that a damaged model makes it read any
// memory.
#pragma once

#include <string>
#include <string_view>

namespace penstock::files {

// `model`: a serialized ModelProto (protobuf), before SentencePiece loads it, which also encodes the model's
// own samples. Throws InputError that begins with `origin` when it is no protobuf message, or a trie leads
// beyond itself, beyond the texts behind it, or past more leaves than SentencePiece has room for.
void check_normalizers(std::string_view model, const std::string& origin);

}  // namespace penstock::files
