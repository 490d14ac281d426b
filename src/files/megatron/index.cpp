// SPDX-License-Identifier: Apache-2.0
#include "files/megatron/index.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {
namespace {

constexpr std::size_t kVersionAt = 9, kTypeAt = 17, kSequencesAt = 18, kDocumentsAt = 26;
constexpr std::uint64_t kBytesOfSequence = 12;  // its length and offset
constexpr std::uint64_t kBytesOfDocument = 8;
constexpr std::int64_t kMostVocabularyOfU16 = 65'500;

std::string text(std::int64_t value) { return std::to_string(value); }

TokenType checked_type(std::uint8_t code, auto&& fail) {
  const bool whole = (code >= 1 && code <= 5) || code == 8;
  if (code == 6 || code == 7) fail("has dtype " + text(code) + ", fractions; token ids are whole numbers");
  if (!whole)
    fail("has the unknown dtype " + text(code) + "; expected 1 u8, 2 i8, 3 i16, 4 i32, 5 i64 or 8 u16");
  return static_cast<TokenType>(code);
}

}  // namespace

std::int64_t size_of(TokenType type) {
  switch (type) {
    case TokenType::U8:
    case TokenType::I8:
      return 1;
    case TokenType::I16:
    case TokenType::U16:
      return 2;
    case TokenType::I32:
      return 4;
    case TokenType::I64:
      return 8;
  }
  return 8;
}

TokenType token_type_for(std::int64_t vocab) {
  return vocab < kMostVocabularyOfU16 ? TokenType::U16 : TokenType::I32;
}

MegatronIndex::MegatronIndex(std::span<const std::byte> bytes, std::uint64_t bin_bytes, std::string origin)
    : bytes_(bytes), bin_bytes_(static_cast<std::int64_t>(bin_bytes)), origin_(std::move(origin)) {
  read_header();
  if (sequences_ == 0 && bin_bytes_ != 0)
    fail(kSequencesAt, "says there are no sequences, but the .bin file has " + text(bin_bytes_) + " bytes");
  if (sequences_ > 0 && offset(0) != 0)
    fail(offset_at(0), "says the first sequence begins at byte " + text(offset(0)) + "; expected 0");
  check_sequences(0, std::min(kCheckedAtOnce, sequences_));
  check_sequences(std::max<std::int64_t>(0, sequences_ - kCheckedAtOnce), sequences_);
  check_documents(0, std::min(kCheckedAtOnce, documents_));
  check_documents(std::max<std::int64_t>(0, documents_ - kCheckedAtOnce), documents_);
}

void MegatronIndex::read_header() {
  const std::string_view all(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (all.size() < kMegatronHeaderBytes)
    fail(all.size(), "ends in its header of " + text(kMegatronHeaderBytes) + " bytes");
  if (!all.starts_with(kMegatronMagic)) {
    fail(0, "begins with \"" + printable(all.substr(0, kMegatronMagic.size())) +
                "\"; expected \"MMIDIDX\" and two zero bytes");
  }
  if (const auto version = number_at<std::uint64_t>(kVersionAt); version != kMegatronVersion)
    fail(kVersionAt, "has version " + std::to_string(version) + "; expected 1");
  type_ =
      checked_type(number_at<std::uint8_t>(kTypeAt), [&](const std::string& what) { fail(kTypeAt, what); });
  const auto sequences = number_at<std::uint64_t>(kSequencesAt);
  const auto entries = number_at<std::uint64_t>(kDocumentsAt);
  const std::uint64_t rest = bytes_.size() - kMegatronHeaderBytes;
  const auto counts =
      std::to_string(sequences) + " sequences and " + std::to_string(entries) + " document entries";
  if (entries == 0) fail(kDocumentsAt, "has no document entries; expected one more than documents");
  if (entries == 1 && sequences > 0)
    fail(kDocumentsAt, "has no document for its " +
                           counted(static_cast<std::int64_t>(sequences), "sequence") +
                           "; expected one more document entry than documents");
  if (sequences > rest / kBytesOfSequence || entries > rest / kBytesOfDocument)
    fail(kSequencesAt, "says it has " + counts + ", more than its " + text(bytes_.size()) + " bytes hold");
  const std::uint64_t needed = sequences * kBytesOfSequence + entries * kBytesOfDocument;
  if (needed != rest) {
    fail(kSequencesAt, "says it has " + counts + ", which need " +
                           std::to_string(kMegatronHeaderBytes + needed) + " bytes; the file has " +
                           text(bytes_.size()));
  }
  sequences_ = static_cast<std::int64_t>(sequences);
  documents_ = static_cast<std::int64_t>(entries) - 1;
  if (bin_bytes_ % size_of(type_) != 0) {
    fail(kTypeAt, "says tokens have " + text(size_of(type_)) + " bytes, but the .bin file has " +
                      text(bin_bytes_) + ", not a multiple of it");
  }
}

template <class T>
T MegatronIndex::number_at(std::size_t position) const {
  T value;
  std::memcpy(&value, bytes_.data() + position, sizeof value);
  return value;
}

std::size_t MegatronIndex::length_at(std::int64_t sequence) const {
  return kMegatronHeaderBytes + 4 * static_cast<std::size_t>(sequence);
}
std::size_t MegatronIndex::offset_at(std::int64_t sequence) const {
  return length_at(sequences_) + 8 * static_cast<std::size_t>(sequence);
}
std::size_t MegatronIndex::document_at(std::int64_t document) const {
  return offset_at(sequences_) + 8 * static_cast<std::size_t>(document);
}

std::int64_t MegatronIndex::length(std::int64_t sequence) const {
  return number_at<std::int32_t>(length_at(sequence));
}
std::int64_t MegatronIndex::offset(std::int64_t sequence) const {
  return number_at<std::int64_t>(offset_at(sequence));
}
std::int64_t MegatronIndex::first_sequence(std::int64_t document) const {
  return number_at<std::int64_t>(document_at(document));
}

// Offset of a sequence, checked as far as possible without its neighbours.
std::int64_t MegatronIndex::plausible_offset(std::int64_t sequence) const {
  const std::int64_t begin = offset(sequence);
  const bool good = begin >= 0 && begin <= bin_bytes_ && begin % size_of(type_) == 0;
  if (!good) {
    fail(offset_at(sequence), "says sequence " + text(sequence) + " begins at byte " + text(begin) +
                                  "; expected a multiple of " + text(size_of(type_)) + " up to " +
                                  text(bin_bytes_));
  }
  return begin;
}

// End of a sequence that must begin at byte `expected`.
std::int64_t MegatronIndex::checked_end(std::int64_t sequence, std::int64_t expected) const {
  const std::int64_t begin = offset(sequence), tokens = length(sequence);
  if (begin != expected) {
    fail(offset_at(sequence), "says sequence " + text(sequence) + " begins at byte " + text(begin) +
                                  "; expected " + text(expected) + ", where the one before it ends");
  }
  if (tokens < 0) {
    fail(length_at(sequence), "says sequence " + text(sequence) + " has " + text(tokens) + " tokens");
  }
  const std::int64_t end = begin + tokens * size_of(type_);
  if (end > bin_bytes_) {
    fail(length_at(sequence), "says sequence " + text(sequence) + " has " + text(tokens) +
                                  " tokens from byte " + text(begin) + " on; the .bin file ends at " +
                                  text(bin_bytes_));
  }
  return end;
}

void MegatronIndex::check_sequences(std::int64_t begin, std::int64_t end) const {
  if (begin >= end) return;
  std::int64_t expected = plausible_offset(begin);
  for (std::int64_t sequence = begin; sequence < end; ++sequence) expected = checked_end(sequence, expected);
  if (end == sequences_ && expected != bin_bytes_) {
    fail(length_at(sequences_ - 1), "says the last sequence ends at byte " + text(expected) +
                                        ", but the .bin file has " + text(bin_bytes_) + " bytes");
  }
}

void MegatronIndex::check_document(std::int64_t document, std::int64_t least, std::int64_t most) const {
  const std::int64_t first = first_sequence(document);
  if (first < least || first > most) {
    fail(document_at(document), "says document " + text(document) + " begins with sequence " + text(first) +
                                    "; expected from " + text(least) + " to " + text(most));
  }
}

// Entries begin..end, both inclusive.
void MegatronIndex::check_documents(std::int64_t begin, std::int64_t end) const {
  std::int64_t least = 0;
  for (std::int64_t document = begin; document <= end; ++document) {
    check_document(document, document == documents_ ? sequences_ : least,
                   document == 0 && sequences_ > 0 ? 0 : sequences_);
    least = first_sequence(document);
  }
}

std::int64_t MegatronIndex::document_begin(std::int64_t document) const {
  PENSTOCK_CHECK(document >= 0 && document <= documents_, "a document exists");
  check_documents(std::max<std::int64_t>(0, document - 1), std::min(document + 1, documents_));
  const std::int64_t sequence = first_sequence(document);
  if (sequence == sequences_) return tokens();
  check_sequences(std::max<std::int64_t>(0, sequence - 1), sequence + 1);
  return offset(sequence) / size_of(type_);
}

std::int64_t MegatronIndex::document_of(std::int64_t token) const {
  std::int64_t low = 0, high = documents_;  // the document is in [low, high)
  const auto halve_at = [&](std::int64_t document) {
    check_document(document, first_sequence(low), first_sequence(high));
    (document_begin(document) <= token ? low : high) = document;
  };
  // Starts at entries that were checked on opening and bound the others: a page of zeros is refused.
  for (const std::int64_t checked : {kCheckedAtOnce, documents_ - kCheckedAtOnce}) {
    if (low < checked && checked < high) halve_at(checked);
  }
  while (high - low > 1) halve_at(low + (high - low) / 2);
  return low;
}

void MegatronIndex::check_tokens(std::int64_t first, std::int64_t count) const {
  PENSTOCK_CHECK(first >= 0 && count >= 0 && first <= tokens() - count, "tokens exist");
  if (count == 0) return;
  const std::int64_t begin = first * size_of(type_), end = begin + count * size_of(type_);
  // The last sequence that begins at or before these tokens; in a damaged file possibly another one.
  std::int64_t sequence = 0, behind = sequences_;
  while (behind - sequence > 1) {
    const std::int64_t middle = sequence + (behind - sequence) / 2;
    (offset(middle) <= begin ? sequence : behind) = middle;
  }
  for (std::int64_t covered = plausible_offset(sequence); covered < end; ++sequence) {
    if (sequence == sequences_)
      fail(length_at(sequences_ - 1), "says the last sequence ends at byte " + text(covered));
    covered = checked_end(sequence, covered);
  }
}

void MegatronIndex::fail(std::size_t position, const std::string& what) const {
  throw InputError(origin_ + ": at byte " + std::to_string(position) + " " + what);
}

}  // namespace penstock::files
