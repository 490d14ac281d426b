// SPDX-License-Identifier: Apache-2.0
// Reading files without copying.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// A whole regular file, mapped for reading. The bytes live as long as the object; movable, not copyable.
// Pages are read on access, so opening takes the same time for any size. If another process truncates the
// file meanwhile, access raises SIGBUS, as for any mapping.
class MappedFile {
 public:
  // Throws InputError naming the path when it is missing, not a regular file, or not readable.
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

// The contents of a small text file. Throws InputError as above, and when longer than `limit` bytes.
std::string read_text(const std::string& path, std::size_t limit);

// The same; nullopt if the file does not exist.
std::optional<std::string> read_text_if_there(const std::string& path, std::size_t limit);

}  // namespace penstock::files
