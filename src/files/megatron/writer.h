// SPDX-License-Identifier: Apache-2.0
// Writes a pair of .bin and .idx files in Megatron's format (index.h). Memory use does not depend on the size
// of the data.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "files/atomic_file.h"
#include "files/megatron/index.h"
#include "files/spill_file.h"

namespace penstock::files {

class MegatronWriter {
 public:
  // Maximum tokens per sequence; a longer document is split into several.
  static constexpr std::int64_t kLongestSequence = std::int64_t{1} << 30;

  // Both files have temporary names until commit(). Throws RunError if they cannot be written. Only tests set
  // `longest_sequence`.
  MegatronWriter(const std::string& prefix, TokenType type, std::int64_t longest_sequence = kLongestSequence);

  // Appends tokens to the current document, in the writer's type, back to back.
  void add(std::span<const std::byte> tokens);
  void end_document();  // drops a document without tokens

  // Gives both files, and the mask if any, their names, all or none. Call end_document() first.
  void commit(AtomicFile* mask = nullptr);

  std::int64_t tokens() const { return tokens_; }
  std::int64_t documents() const { return documents_; }

 private:
  void end_sequence(bool document_ends);
  void put_lengths_away();
  void for_each_sequence(const std::function<void(std::int64_t length, bool document_ends)>& visit);
  template <class T>
  void write_number(T value);

  TokenType type_;
  std::int64_t longest_sequence_;
  AtomicFile bin_, idx_;
  SpillFile lengths_;                      // of all sequences, until commit()
  std::vector<std::int32_t> new_lengths_;  // not yet in lengths_
  std::string buffer_;                     // of idx_
  std::int64_t open_tokens_ = 0;           // of the current sequence
  std::int64_t tokens_ = 0, sequences_ = 0, documents_ = 0;
};

}  // namespace penstock::files
