// SPDX-License-Identifier: Apache-2.0
#include "files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {
namespace {

constexpr std::size_t kLargestWrite = std::size_t{1} << 30;  // Linux writes less than 2 GiB at a time

// A renamed file lasts only when its directory has been flushed too. Best effort: some file systems refuse
// it.
void flush_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const int descriptor =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".part-" + std::to_string(getpid())) {
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be written", 0);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  PENSTOCK_CHECK(descriptor_ >= 0, "a committed file is not written any more");
  for (std::size_t done = 0; done < bytes.size();) {
    const auto written =
        ::write(descriptor_, bytes.data() + done, std::min(bytes.size() - done, kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot be written", bytes.size() - done);
    done += static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  PENSTOCK_CHECK(descriptor_ >= 0, "a file is committed once");
  if (fsync(descriptor_) != 0) fail("cannot be flushed", 0);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed to its name", 0);
  close(std::exchange(descriptor_, -1));
  flush_directory_of(path_);
}

void AtomicFile::fail(const std::string& what, std::size_t wanted) const {
  const std::string reason = std::strerror(errno);
  throw RunError(printable(path_, 500) + " " + what +
                 (wanted > 0 ? ": " + std::to_string(wanted) + " bytes wanted" : "") + ": " + reason);
}

void write_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace penstock::files
