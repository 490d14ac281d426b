// SPDX-License-Identifier: Apache-2.0
// Reading files without copying.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

class InputFile;

// A whole regular file, mapped for reading. The bytes live as long as the object; movable, not copyable.
// Pages are read on access, so opening takes the same time for any size. Access raises SIGBUS where another
// process has truncated the file or the disk cannot deliver the page (bus_error.h); InputFile reports both.
class MappedFile {
 public:
  // Throws InputError naming the path when it is missing, not a regular file, or not readable.
  explicit MappedFile(const std::string& path);
  explicit MappedFile(const InputFile& file);  // which may be closed afterwards
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

// False only if nothing has this name. True for a dangling link and where the status cannot be read: opening
// such a file then fails and names it, instead of taking it for absent.
bool is_there(const std::string& path);

// The text of the file; nullopt unless is_there().
std::optional<std::string> read_text_if_there(const std::string& path, std::size_t limit);

}  // namespace penstock::files
