// SPDX-License-Identifier: Apache-2.0
#include "files/tokenizers/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <exception>

#include "base/error.h"
#include "base/text.h"
#include "files/mapped_file.h"
#include "files/tokenizers/normalizer_check.h"

namespace penstock::files {
namespace {

// Returns false if the library rejects the model; `why` is its reason, if it gives one.
bool load(sentencepiece::SentencePieceProcessor& model, std::string_view serialized, std::string& why) {
  try {
    const auto status = model.LoadFromSerializedProto(serialized);
    if (!status.ok()) why = status.ToString();
  } catch (const std::exception& error) {  // pieces that form no valid trie
    why = error.what();
  }
  return why.empty() && model.GetPieceSize() > 0;
}

}  // namespace

SentencePiece::SentencePiece(const std::string& path)
    : SentencePiece(MappedFile(path).text(), printable(path, 500)) {}

SentencePiece::SentencePiece(std::string_view serialized, const std::string& origin)
    : model_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  check_normalizers(serialized, origin);
  std::string why;
  if (!load(*model_, serialized, why))
    throw InputError(origin + ": is not a SentencePiece model" +
                     (why.empty() ? "" : ": " + printable(why, 200)));
}
SentencePiece::~SentencePiece() = default;
SentencePiece::SentencePiece(SentencePiece&&) noexcept = default;

std::int64_t SentencePiece::vocab() const { return model_->GetPieceSize(); }

std::optional<std::int32_t> SentencePiece::end_of_text() const {
  const int id = model_->eos_id();
  return id >= 0 ? std::optional<std::int32_t>(id) : std::nullopt;
}

std::vector<std::int32_t> SentencePiece::encode(std::string_view text, std::vector<std::size_t>* last) const {
  sentencepiece::ImmutableSentencePieceText encoded;
  const auto status = model_->Encode(text, encoded.mutable_proto());
  if (!status.ok()) throw RunError("SentencePiece: " + printable(status.ToString(), 200));
  std::vector<std::int32_t> ids;
  ids.reserve(encoded.pieces_size());
  for (std::size_t i = 0; i < encoded.pieces_size(); ++i) {
    const auto piece = encoded.pieces(static_cast<int>(i));
    ids.push_back(static_cast<std::int32_t>(piece.id()));
    // Of the tokens for the bytes of one character, all but the last are empty.
    if (last) last->push_back(piece.end() > piece.begin() ? piece.end() - 1 : piece.begin());
  }
  return ids;
}

}  // namespace penstock::files
