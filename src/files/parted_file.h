// SPDX-License-Identifier: Apache-2.0
// A file that several processes write together, each in its own byte ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// The first process to open the file creates it; all set the same size, so that no older contents remain.
// Complete when all have flushed their parts. Failures are RunErrors naming the path and the bytes wanted.
class PartedFile {
 public:
  PartedFile(std::string path, std::uint64_t size);
  ~PartedFile();
  PartedFile(const PartedFile&) = delete;
  PartedFile& operator=(const PartedFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void write(std::uint64_t offset, std::string_view text) const {
    write(offset, std::as_bytes(std::span(text)));
  }
  void flush() const;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace penstock::files
