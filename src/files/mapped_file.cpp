// SPDX-License-Identifier: Apache-2.0
#include "files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw InputError(printable(path, 500) + ": " + why);
}

// Closes the descriptor on destruction.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

std::size_t size_of_regular_file(const std::string& path, int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) fail(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(path, "is a directory, not a file");
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file");
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // Non-blocking: opening a pipe without a writer would block before its type can be checked.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) fail(path, "cannot be opened: " + std::string(std::strerror(errno)));
  const std::size_t size = size_of_regular_file(path, file.number);
  if (size == 0) return;  // an empty mapping is an error
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapped == MAP_FAILED) fail(path, "cannot be mapped: " + std::string(std::strerror(errno)));
  data_ = static_cast<const std::byte*>(mapped);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string read_text(const std::string& path, std::size_t limit) {
  const MappedFile file(path);
  if (file.text().size() > limit) {
    fail(path, "has " + std::to_string(file.text().size()) + " bytes; at most " + std::to_string(limit) +
                   " are read: give a smaller file");
  }
  return std::string(file.text());
}

std::optional<std::string> read_text_if_there(const std::string& path, std::size_t limit) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  return read_text(path, limit);
}

}  // namespace penstock::files
