// SPDX-License-Identifier: Apache-2.0
// The few calls by which files are changed, in one place: the seam at which tests let a disk fail.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock::files {

enum class OpenFor : std::uint8_t { Writing, Appending };  // a file that is emptied first, or gone on with

// The machine's own. Calls behave as the system's: -1 and errno on failure. They may come from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, OpenFor purpose);  // a descriptor; the file is made when missing
  virtual ssize_t write(int descriptor, std::span<const std::byte> bytes);  // may write fewer
  virtual int flush(int descriptor);                                        // to the disk itself
  virtual int rename(const std::string& from, const std::string& to);
  virtual int make_directory(const std::string& path);
  virtual int remove(const std::string& path);  // a file or an empty directory

  // A descriptor of an empty file in the directory that has no name, for reading and writing: it is gone when
  // the process ends, however it ends.
  virtual int open_unnamed(const std::string& directory);
  virtual int reserve(int descriptor, std::int64_t bytes);  // room on the disk, where its kind can do that
  virtual ssize_t write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset);
  virtual ssize_t read_at(int descriptor, std::span<std::byte> bytes, std::int64_t offset);
};

// The one in use.
FileSystem& file_system();

// Puts another one in its place for the life of this object, in the whole process; for tests.
class ReplacedFileSystem {
 public:
  explicit ReplacedFileSystem(FileSystem& other);
  ~ReplacedFileSystem();
  ReplacedFileSystem(const ReplacedFileSystem&) = delete;
  ReplacedFileSystem& operator=(const ReplacedFileSystem&) = delete;

 private:
  FileSystem* before_;
};

// Writes all bytes, however many the system takes at a time. Throws RunError naming the path and the bytes
// that were still wanted.
void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path);

// RunError of the calls above: "PATH WHAT: 500 bytes wanted: No space left on device", from errno.
[[noreturn]] void fail_to(const std::string& what, const std::string& path, std::size_t wanted = 0);

}  // namespace penstock::files
