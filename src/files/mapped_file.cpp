// SPDX-License-Identifier: Apache-2.0
#include "files/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/bus_error.h"
#include "files/input_file.h"

namespace penstock::files {

MappedFile::MappedFile(const std::string& path) : MappedFile(InputFile(path)) {}

MappedFile::MappedFile(const InputFile& file) {
  const auto size = static_cast<std::size_t>(file.size());
  if (size == 0) return;  // an empty mapping is an error
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapped == MAP_FAILED)
    throw InputError(printable(file.path(), 500) + ": cannot be mapped: " + std::strerror(errno));
  data_ = static_cast<const std::byte*>(mapped);
  size_ = size;
  name_mapping(data_, size_, file.path());
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapping(data_);
  munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string read_text(const std::string& path, std::size_t limit) {
  InputFile file(path);
  if (file.size() > limit) {
    throw InputError(printable(path, 500) + ": has " + std::to_string(file.size()) + " bytes; at most " +
                     std::to_string(limit) + " are read: give a smaller file");
  }
  std::string text;
  text.reserve(static_cast<std::size_t>(file.size()));
  file.read(0, file.size(), [&](std::span<const std::byte> piece) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return text;
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
}

std::optional<std::string> read_text_if_there(const std::string& path, std::size_t limit) {
  if (!is_there(path)) return {};
  return read_text(path, limit);
}

}  // namespace penstock::files
