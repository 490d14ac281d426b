// SPDX-License-Identifier: Apache-2.0
// All system calls that change files, so that tests can inject disk failures.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock::files {

// Truncate the file, append to it, overwrite parts of it, append to a new file (EEXIST if it exists), or
// truncate it to map it for reading and writing.
enum class OpenFor : std::uint8_t { Writing, Appending, Parts, New, Mapping };

// The real file system. Calls return -1 and set errno on failure, like system calls. Any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, OpenFor purpose);  // a descriptor; creates the file if missing
  virtual ssize_t write(int descriptor, std::span<const std::byte> bytes);  // may write fewer
  virtual int flush(int descriptor);                                        // to disk
  virtual int leave_cache(int descriptor);  // writes data to disk and drops it from the page cache
  virtual int rename(const std::string& from, const std::string& to);
  virtual int make_directory(const std::string& path);
  virtual int remove(const std::string& path);  // a file or an empty directory

  // A read-write descriptor of an empty unnamed file in the directory; the system removes it when the process
  // ends, even if killed.
  virtual int open_unnamed(const std::string& directory);
  virtual int reserve(int descriptor, std::int64_t bytes);  // allocates disk space where supported
  virtual int resize(int descriptor, std::int64_t bytes);   // truncates or extends with zeros
  virtual ssize_t write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset);
  virtual ssize_t read_at(int descriptor, std::span<std::byte> bytes, std::int64_t offset);
};

// The current file system.
FileSystem& file_system();

// Replaces the current file system while alive, process-wide; for tests.
class ReplacedFileSystem {
 public:
  explicit ReplacedFileSystem(FileSystem& other);
  ~ReplacedFileSystem();
  ReplacedFileSystem(const ReplacedFileSystem&) = delete;
  ReplacedFileSystem& operator=(const ReplacedFileSystem&) = delete;

 private:
  FileSystem* before_;
};

// Writes all bytes, with as many calls as needed. Throws RunError naming the path and the number of bytes
// left.
void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path);

// The same from `offset` on, for descriptors written in parts.
void write_all_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset,
                  const std::string& path);

// RunError for a failed call, from errno: "PATH WHAT: 500 bytes wanted: No space left on device".
[[noreturn]] void fail_to(const std::string& what, const std::string& path, std::size_t wanted = 0);

}  // namespace penstock::files
