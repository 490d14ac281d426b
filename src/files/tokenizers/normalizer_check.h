// SPDX-License-Identifier: Apache-2.0
// What SentencePiece does not check of a tokenizer model: it follows the double-array trie of the
// normalizer's precompiled_charsmap without looking where it leads, so that a damaged model makes it read any
// memory.
#pragma once

#include <string>
#include <string_view>

namespace penstock::files {

// `model`: a serialized ModelProto (protobuf) that SentencePiece has parsed. Throws InputError that begins
// with `origin` when a trie leads beyond itself or beyond the texts behind it.
void check_normalizers(std::string_view model, const std::string& origin);

}  // namespace penstock::files
