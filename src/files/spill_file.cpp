// SPDX-License-Identifier: Apache-2.0
#include "files/spill_file.h"

#include <unistd.h>

#include <cerrno>

#include "files/file_system.h"

namespace penstock::files {

SpillFile::SpillFile(const std::string& directory, std::string name, Bytes bytes)
    : name_(std::move(name)), descriptor_(file_system().open_unnamed(directory)) {
  if (descriptor_ < 0) fail_to("cannot be made", name_, static_cast<std::size_t>(bytes));
  if (bytes == 0 || file_system().reserve(descriptor_, bytes) == 0) return;
  const int reason = errno;
  ::close(descriptor_);
  errno = reason;
  fail_to("finds no room on its disk", name_, static_cast<std::size_t>(bytes));
}

SpillFile::~SpillFile() { ::close(descriptor_); }

void SpillFile::write(Bytes offset, std::span<const std::byte> bytes) const {
  write_all_at(descriptor_, bytes, offset, name_);
}

void SpillFile::read(Bytes offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    errno = EIO;  // the file is shorter than expected
    const ssize_t got = file_system().read_at(descriptor_, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_to("cannot be read back", name_, bytes.size());
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

}  // namespace penstock::files
