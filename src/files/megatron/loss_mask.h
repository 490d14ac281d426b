// SPDX-License-Identifier: Apache-2.0
// PREFIX.mask beside Megatron's PREFIX.bin: a byte for each token, 1 where the token is a target and 0 where
// it is read alone. Without the file all tokens are.
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
  // Maps the file if it exists. Throws InputError when it has not as many bytes as there are tokens.
  LossMask(const std::string& prefix, std::int64_t tokens);

  // Of the tokens `first`, first + 1, ... Throws InputError naming the file and the offset of a byte that is
  // neither 0 nor 1. Any thread.
  void read(std::int64_t first, std::span<char> learnt) const;

 private:
  std::string path_;
  std::unique_ptr<MappedFile> file_;  // null: all are targets
};

class LossMaskWriter {
 public:
  explicit LossMaskWriter(const std::string& prefix) : path_(loss_mask_of(prefix)) {}

  void add(std::string_view learnt);  // of each further token 1 or 0

  // To be committed with the pair; null where all tokens are targets, which needs no file.
  AtomicFile* file() { return file_.get(); }

  std::int64_t learnt() const { return learnt_; }

 private:
  std::string path_;
  std::unique_ptr<AtomicFile> file_;  // from the first token that is no target
  std::int64_t tokens_ = 0, learnt_ = 0;
};

}  // namespace penstock::files
