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
//
// After every `window` bytes, the written data is dropped from the page cache: nobody reads it soon, and
// fresh cache pages would cost a training machine more time than the writing.
class PartedFile {
 public:
  static constexpr std::uint64_t kWindow = std::uint64_t{16} << 20;

  PartedFile(std::string path, std::uint64_t size, std::uint64_t window = kWindow);
  ~PartedFile();
  PartedFile(const PartedFile&) = delete;
  PartedFile& operator=(const PartedFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void write(std::uint64_t offset, std::string_view text) { write(offset, std::as_bytes(std::span(text))); }
  void flush() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t window_;
  std::uint64_t cached_ = 0;  // bytes written since the cache was last dropped
};

}  // namespace penstock::files
