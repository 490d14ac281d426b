// SPDX-License-Identifier: Apache-2.0
// PREFIX.mask next to Megatron's PREFIX.bin: one byte per token, 1 if the token is a target and 0 if it is
// only read. Without the file all tokens are targets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "files/atomic_file.h"
#include "files/mapped_file.h"

namespace penstock::files {

std::string loss_mask_of(const std::string& prefix);  // the file's path

class LossMask {
 public:
  // Maps the file if there is one (is_there). Throws InputError if it cannot be read, or unless it has one
  // byte per token.
  LossMask(const std::string& prefix, std::int64_t tokens);

  // Reads the mask of tokens `first`, first + 1, ... Throws InputError naming the file and the offset of a
  // byte that is neither 0 nor 1. Any thread.
  void read(std::int64_t first, std::span<char> in_loss) const;

 private:
  std::string path_;
  std::unique_ptr<MappedFile> file_;  // null: all are targets
};

class LossMaskWriter {
 public:
  explicit LossMaskWriter(const std::string& prefix) : path_(loss_mask_of(prefix)) {}

  void add(std::string_view in_loss);  // appends 1 or 0 for each token

  // Commit it with the .bin and .idx files. Null if all tokens are targets: then no file is needed.
  AtomicFile* file() { return file_.get(); }

  std::int64_t in_loss() const { return in_loss_; }

 private:
  std::string path_;
  std::unique_ptr<AtomicFile> file_;  // created at the first token that is not a target
  std::int64_t tokens_ = 0, in_loss_ = 0;
};

}  // namespace penstock::files
