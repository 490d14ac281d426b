// SPDX-License-Identifier: Apache-2.0
// Files read without copying them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// A whole regular file, mapped for reading. The bytes live as long as the object; movable, not copyable.
// Pages are read when touched, so opening takes the same time for any size. A file that another process
// shortens meanwhile raises SIGBUS on access, as with every mapping.
class MappedFile {
 public:
  // Throws InputError naming the path when it is missing, no regular file, or not readable.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole of a small text file. Throws InputError as above, and when it is longer than `limit` bytes.
std::string read_text(const std::string& path, std::size_t limit);

}  // namespace penstock::files
