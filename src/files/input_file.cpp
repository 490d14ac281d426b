// SPDX-License-Identifier: Apache-2.0
#include "files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{8} << 20;

[[noreturn]] void refuse_input(const std::string& path, const std::string& why) {
  throw InputError(printable(path, 500) + ": " + why);
}

std::uint64_t size_of_regular_file(const std::string& path, int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) refuse_input(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) refuse_input(path, "is a directory, not a file");
  if (!S_ISREG(status.st_mode)) refuse_input(path, "is not a regular file");
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

InputFile::Descriptor::~Descriptor() {
  if (number >= 0) close(number);
}

// Non-blocking: opening a pipe without a writer would block before its type can be checked.
InputFile::InputFile(std::string path)
    : path_(std::move(path)), descriptor_{open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)} {
  if (descriptor() < 0) refuse_input(path_, "cannot be opened: " + std::string(std::strerror(errno)));
  size_ = size_of_regular_file(path_, descriptor());
}

void InputFile::read(std::uint64_t begin, std::uint64_t bytes, const Visit& visit) {
  buffer_.resize(std::max(buffer_.size(), static_cast<std::size_t>(std::min(kPiece, bytes))));
  for (const std::uint64_t end = begin + bytes; begin < end; begin += std::min(kPiece, end - begin)) {
    const auto piece = std::span(buffer_).first(static_cast<std::size_t>(std::min(kPiece, end - begin)));
    fill(piece, begin);
    visit(piece);
  }
}

void InputFile::fill(std::span<std::byte> piece, std::uint64_t begin) const {
  while (!piece.empty()) {
    const ssize_t read = pread(descriptor(), piece.data(), piece.size(), static_cast<off_t>(begin));
    if (read < 0 && errno == EINTR) continue;
    const std::string where = " at byte " + std::to_string(begin);
    if (read < 0) refuse_input(path_, "cannot be read" + where + ": " + std::strerror(errno));
    if (read == 0) refuse_input(path_, "ends" + where + "; it had " + std::to_string(size_) + " bytes");
    piece = piece.subspan(static_cast<std::size_t>(read));
    begin += static_cast<std::uint64_t>(read);
  }
}

}  // namespace penstock::files
