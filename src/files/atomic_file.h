// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// Writes to a temporary name beside the path; commit() flushes it to the disk and renames it. What was at the
// path stays until then, and stays for good when the object is destroyed without a commit. Failures are
// RunErrors that name the path and the bytes wanted (a full disk, a short write).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

void write_atomically(const std::string& path, std::string_view text);

}  // namespace penstock::files
