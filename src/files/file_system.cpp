// SPDX-License-Identifier: Apache-2.0
#include "files/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {
namespace {

constexpr std::size_t kLargestWrite = std::size_t{1} << 30;  // Linux writes less than 2 GiB per call

std::atomic<FileSystem*>& current() {
  static FileSystem machine;
  static std::atomic<FileSystem*> in_use{&machine};
  return in_use;
}

template <class Write>
void write_in_parts(std::span<const std::byte> bytes, const std::string& path, Write&& write) {
  while (!bytes.empty()) {
    errno = ENOSPC;  // if the system writes nothing and sets no errno
    const ssize_t written = write(bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_to("cannot be written", path, bytes.size());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

int FileSystem::open(const std::string& path, OpenFor purpose) {
  // For parts, a pipe of that name is no file: without O_NONBLOCK it would wait for a reader.
  constexpr std::array kHow{O_WRONLY | O_TRUNC, O_WRONLY | O_APPEND, O_WRONLY | O_NONBLOCK,
                            O_WRONLY | O_APPEND | O_EXCL, O_RDWR | O_TRUNC};
  const int how = kHow.at(static_cast<std::size_t>(purpose));
  return ::open(path.c_str(), how | O_CREAT | O_CLOEXEC, 0666);
}

ssize_t FileSystem::write(int descriptor, std::span<const std::byte> bytes) {
  return ::write(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite));
}

int FileSystem::flush(int descriptor) { return ::fsync(descriptor); }

int FileSystem::leave_cache(int descriptor) {
  constexpr unsigned kAndWait =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const bool lost =
      ::sync_file_range(descriptor, 0, 0, kAndWait) < 0 &&
      (errno == EIO || errno == ENOSPC || errno == EDQUOT);  // a later flush would not report it again
  if (lost) return -1;
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  return 0;
}

int FileSystem::rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str());
}

int FileSystem::make_directory(const std::string& path) { return ::mkdir(path.c_str(), 0777); }

int FileSystem::remove(const std::string& path) { return ::remove(path.c_str()); }

int FileSystem::open_unnamed(const std::string& directory) {
  const int unnamed = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return unnamed;
  std::string path = directory + "/penstock-XXXXXX";  // fallback where O_TMPFILE is not supported
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

int FileSystem::reserve(int descriptor, std::int64_t bytes) {
  const int result = ::fallocate(descriptor, 0, 0, bytes);
  return result < 0 && errno == EOPNOTSUPP ? 0 : result;
}

int FileSystem::resize(int descriptor, std::int64_t bytes) { return ::ftruncate(descriptor, bytes); }

ssize_t FileSystem::write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset) {
  return ::pwrite(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite), offset);
}

ssize_t FileSystem::read_at(int descriptor, std::span<std::byte> bytes, std::int64_t offset) {
  return ::pread(descriptor, bytes.data(), std::min(bytes.size(), kLargestWrite), offset);
}

FileSystem& file_system() { return *current().load(); }

ReplacedFileSystem::ReplacedFileSystem(FileSystem& other) : before_(current().exchange(&other)) {}

ReplacedFileSystem::~ReplacedFileSystem() { current().store(before_); }

void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  write_in_parts(bytes, path,
                 [&](std::span<const std::byte> rest) { return file_system().write(descriptor, rest); });
}

void write_all_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset,
                  const std::string& path) {
  const std::byte* begin = bytes.data();
  write_in_parts(bytes, path, [&](std::span<const std::byte> rest) {
    return file_system().write_at(descriptor, rest, offset + (rest.data() - begin));
  });
}

void fail_to(const std::string& what, const std::string& path, std::size_t wanted) {
  const std::string reason = std::strerror(errno);
  throw RunError(printable(path, 500) + " " + what +
                 (wanted > 0 ? ": " + std::to_string(wanted) + " bytes wanted" : "") + ": " + reason);
}

}  // namespace penstock::files
