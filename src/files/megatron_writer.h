// SPDX-License-Identifier: Apache-2.0
// Writes a pair of .bin and .idx files as Megatron does (megatron_index.h), in memory that does not grow with
// the data.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "files/atomic_file.h"
#include "files/megatron_index.h"

namespace penstock::files {

class MegatronWriter {
 public:
  // The most tokens of a sequence; a longer document consists of several.
  static constexpr std::int64_t kLongestSequence = std::int64_t{1} << 30;

  // Both files have temporary names until commit(). RunError when they cannot be written. `longest_sequence`
  // is for tests.
  MegatronWriter(const std::string& prefix, TokenType type, std::int64_t longest_sequence = kLongestSequence);

  // More tokens of the document under way, in the writer's type, back to back.
  void add(std::span<const std::byte> tokens);
  void end_document();  // a document without tokens leaves nothing

  // Flushes both files and gives them their names, .bin first. The document under way has been ended.
  void commit();

  std::int64_t tokens() const { return tokens_; }
  std::int64_t documents() const { return documents_; }

 private:
  void end_sequence(bool document_ends);
  void for_each_sequence(const std::function<void(std::int64_t length, bool document_ends)>& visit);
  template <class T>
  void write_number(T value);

  TokenType type_;
  std::int64_t longest_sequence_;
  AtomicFile bin_, idx_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> lengths_;  // of all sequences, until commit()
  std::string lengths_name_;
  std::string buffer_;            // of idx_
  std::int64_t open_tokens_ = 0;  // of the sequence under way
  std::int64_t tokens_ = 0, sequences_ = 0, documents_ = 0;
};

}  // namespace penstock::files
