// SPDX-License-Identifier: Apache-2.0
#include "files/tokenizers/sentencepiece.h"

#include <sentencepiece_processor.h>

#include "base/error.h"
#include "base/text.h"
#include "files/mapped_file.h"
#include "files/tokenizers/normalizer_check.h"

namespace penstock::files {

SentencePiece::SentencePiece(const std::string& path)
    : SentencePiece(MappedFile(path).text(), printable(path, 500)) {}

SentencePiece::SentencePiece(std::string_view serialized, const std::string& origin)
    : model_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  const auto status = model_->LoadFromSerializedProto(serialized);
  if (!status.ok() || model_->GetPieceSize() <= 0) {
    throw InputError(origin + ": is no SentencePiece model" +
                     (status.ok() ? "" : ": " + printable(status.ToString(), 200)));
  }
  check_normalizers(serialized, origin);
}
SentencePiece::~SentencePiece() = default;
SentencePiece::SentencePiece(SentencePiece&&) noexcept = default;

std::int64_t SentencePiece::vocab() const { return model_->GetPieceSize(); }

std::optional<std::int32_t> SentencePiece::end_of_text() const {
  const int id = model_->eos_id();
  return id >= 0 ? std::optional<std::int32_t>(id) : std::nullopt;
}

std::vector<std::int32_t> SentencePiece::encode(std::string_view text) const {
  std::vector<int> ids;
  const auto status = model_->Encode(text, &ids);
  if (!status.ok()) throw RunError("SentencePiece: " + printable(status.ToString(), 200));
  return {ids.begin(), ids.end()};
}

}  // namespace penstock::files
