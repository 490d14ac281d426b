// SPDX-License-Identifier: Apache-2.0
// The tokens of a pair of Megatron .bin and .idx files, memory-mapped.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "files/mapped_file.h"
#include "files/megatron/index.h"

namespace penstock::files {

class MegatronData {
 public:
  // Maps <prefix>.bin and <prefix>.idx. Throws InputError as MegatronIndex does.
  explicit MegatronData(const std::string& prefix);

  std::int64_t tokens() const { return index_.tokens(); }
  const MegatronIndex& index() const { return index_; }

  // Reads tokens `first`, first + 1, ... Throws InputError naming the file and the offset when a token is
  // negative or not below `vocab`, or when the index is damaged there. Any thread.
  void read(std::int64_t first, std::span<std::int64_t> tokens, std::int64_t vocab) const;

 private:
  std::string prefix_;
  MappedFile bin_, idx_;
  MegatronIndex index_;
};

}  // namespace penstock::files
