// SPDX-License-Identifier: Apache-2.0
// Reading files with system calls, which report a page that the disk cannot deliver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace penstock::files {

// A regular file, open for reading. Not thread-safe.
class InputFile {
 public:
  using Visit = std::function<void(std::span<const std::byte>)>;

  // Throws InputError naming the path when it is missing, not a regular file, or not readable.
  explicit InputFile(std::string path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_.number; }
  std::uint64_t size() const { return size_; }  // when it was opened

  // Visits `bytes` bytes from `begin` on in order, in pieces of 8 MiB, the last one shorter. Throws
  // InputError naming the path and the offset where the disk cannot deliver them (EIO, ESTALE) or the file
  // has become shorter; access to a mapping raises SIGBUS there.
  void read(std::uint64_t begin, std::uint64_t bytes, const Visit& visit);

 private:
  struct Descriptor {
    int number;
    ~Descriptor();
  };

  void fill(std::span<std::byte> piece, std::uint64_t begin) const;

  std::string path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace penstock::files
