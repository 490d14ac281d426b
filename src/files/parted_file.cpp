// SPDX-License-Identifier: Apache-2.0
#include "files/parted_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "files/file_system.h"

namespace penstock::files {

PartedFile::PartedFile(std::string path, std::uint64_t size, std::uint64_t window)
    : path_(std::move(path)), descriptor_(file_system().open(path_, OpenFor::Parts)), window_(window) {
  if (descriptor_ < 0) fail_to("cannot be written", path_);
  if (file_system().resize(descriptor_, static_cast<std::int64_t>(size)) == 0) return;
  const int reason = errno;
  ::close(descriptor_);
  errno = reason;
  fail_to("cannot be written", path_, size);
}

PartedFile::~PartedFile() { ::close(descriptor_); }

void PartedFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), window_ - cached_));
    write_all_at(descriptor_, part, static_cast<std::int64_t>(offset), path_);
    bytes = bytes.subspan(part.size());
    offset += part.size();
    cached_ += part.size();
    if (cached_ < window_) continue;
    if (file_system().leave_cache(descriptor_) != 0) fail_to("cannot be written", path_, bytes.size());
    cached_ = 0;
  }
}

void PartedFile::flush() const {
  if (file_system().flush(descriptor_) != 0) fail_to("cannot be flushed", path_);
}

}  // namespace penstock::files
