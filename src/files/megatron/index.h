// SPDX-License-Identifier: Apache-2.0
// The .idx file, which describes the tokens of Megatron's .bin file. Little-endian, arrays unaligned:
//
//   0   "MMIDIDX", two zero bytes          34           i32 tokens of each sequence [S]
//   9   u64 version, 1                     34 + 4S      i64 byte offset of each in .bin [S]
//   17  u8 type of a token                 34 + 12S     i64 first sequence of each document, and S [D]
//   18  u64 S sequences
//   26  u64 D = documents + 1
//
// The .bin file holds the sequences back to back. All input is validated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

enum class TokenType : std::uint8_t { U8 = 1, I8 = 2, I16 = 3, I32 = 4, I64 = 5, U16 = 8 };

std::int64_t size_of(TokenType type);  // bytes per token

// Megatron's choice for a vocabulary: u16 below 65,500 tokens, else i32.
TokenType token_type_for(std::int64_t vocab);

inline constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
inline constexpr std::uint64_t kMegatronVersion = 1;
inline constexpr std::size_t kMegatronHeaderBytes = 34;

class MegatronIndex {
 public:
  // This many sequences and documents at each end are checked on opening, the rest on reading, so that
  // opening takes the same time for any size.
  static constexpr std::int64_t kCheckedAtOnce = 1 << 18;

  // Parses the bytes, which the caller keeps alive; `bin_bytes` is the length of the .bin file. Throws
  // InputError naming `origin`, the offset, and the found and expected values: wrong magic, version or type,
  // a length that contradicts the counts, sequences that are not contiguous, do not end with the .bin file or
  // have negative lengths, documents that run backwards.
  MegatronIndex(std::span<const std::byte> bytes, std::uint64_t bin_bytes, std::string origin);

  TokenType type() const { return type_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t documents() const { return documents_; }
  std::int64_t tokens() const { return bin_bytes_ / size_of(type_); }

  // As stored in the file, unchecked.
  std::int64_t length(std::int64_t sequence) const;  // tokens
  std::int64_t offset(std::int64_t sequence) const;  // bytes
  std::int64_t first_sequence(std::int64_t document) const;

  // First token of a document; tokens() for documents(). Throws InputError if the file's entry is damaged.
  std::int64_t document_begin(std::int64_t document) const;

  // The document of an existing token. Throws InputError if an entry on the search path is damaged.
  std::int64_t document_of(std::int64_t token) const;

  // Throws InputError unless the sequences of these tokens are contiguous.
  void check_tokens(std::int64_t first, std::int64_t count) const;

 private:
  void read_header();
  void check_sequences(std::int64_t begin, std::int64_t end) const;
  void check_document(std::int64_t document, std::int64_t least, std::int64_t most) const;  // first sequence
  void check_documents(std::int64_t begin, std::int64_t end) const;
  std::int64_t plausible_offset(std::int64_t sequence) const;
  std::int64_t checked_end(std::int64_t sequence, std::int64_t expected) const;
  std::size_t length_at(std::int64_t sequence) const;  // offsets in the file
  std::size_t offset_at(std::int64_t sequence) const;
  std::size_t document_at(std::int64_t document) const;
  template <class T>
  T number_at(std::size_t position) const;
  [[noreturn]] void fail(std::size_t position, const std::string& what) const;

  std::span<const std::byte> bytes_;
  std::int64_t bin_bytes_;
  std::string origin_;
  TokenType type_ = TokenType::U16;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
};

}  // namespace penstock::files
