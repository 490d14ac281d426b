// SPDX-License-Identifier: Apache-2.0
// A file that appears complete or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace penstock::files {

// A name beside the path, no longer than names may be, for what will be renamed to it by this process.
std::string temporary_name(const std::string& path);

// Writes to a temporary name in the same directory; commit() flushes it to disk and renames it. The old file
// at the path is kept until then, and permanently if the object is destroyed without a commit. Failures are
// RunErrors that name the path and the number of bytes to be written (a full disk, a short write).
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
  friend void commit_together(std::span<AtomicFile* const> files);
  void flush();
  void take_name();
  void give_name_back();

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

// Commits all files or none; their names must be free. Flushes all before the first rename; if a rename
// fails, removes the files renamed before it.
void commit_together(std::span<AtomicFile* const> files);

void write_atomically(const std::string& path, std::string_view text);

}  // namespace penstock::files
