// SPDX-License-Identifier: Apache-2.0
#include "files/atomic_file.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "files/directory.h"
#include "files/file_system.h"

namespace penstock::files {
namespace {

namespace fs = std::filesystem;

// The file that a link names is written, not the link.
std::string without_links(std::string path) {
  constexpr int kMostLinks = 40;  // as the system follows
  std::error_code error;
  fs::path named = path;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!fs::is_symlink(fs::symlink_status(named, error))) return named.string();
    named = named.parent_path() / fs::read_symlink(named, error);
    if (error) return path;
  }
  return path;
}

}  // namespace

std::string temporary_name(const std::string& path) {
  constexpr std::size_t kLongest = 255;  // bytes of a name, NAME_MAX
  const std::string ending = ".part-" + std::to_string(getpid()), name = fs::path(path).filename().string();
  if (name.size() > kLongest) return path + ending;  // opening it says that it is too long
  if (name.size() + ending.size() <= kLongest) return path + ending;
  std::array<char, 18> own{};  // names that differ at their ends alone are cut to the same
  std::snprintf(own.data(), own.size(), "-%016llx", static_cast<unsigned long long>(hash(name)));
  const std::string last = own.data() + ending;
  return (fs::path(path).parent_path() / (name.substr(0, kLongest - last.size()) + last)).string();
}

AtomicFile::AtomicFile(std::string path)
    : path_(without_links(std::move(path))), temporary_(temporary_name(path_)) {
  std::error_code error;
  const fs::file_status there = fs::status(path_, error);
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there))
    throw RunError(path_ + " is not a regular file, and would be replaced by one");
  descriptor_ = file_system().open(temporary_, OpenFor::Writing);
  if (descriptor_ < 0) fail_to("cannot be written", path_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  file_system().remove(temporary_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  PENSTOCK_CHECK(descriptor_ >= 0, "a committed file is not written any more");
  write_all(descriptor_, bytes, path_);
}

void AtomicFile::commit() {
  flush();
  take_name();
}

void AtomicFile::flush() {
  PENSTOCK_CHECK(descriptor_ >= 0, "a file is committed once");
  if (file_system().flush(descriptor_) != 0) fail_to("cannot be flushed", path_);
}

void AtomicFile::take_name() {
  if (file_system().rename(temporary_, path_) != 0) fail_to("cannot be renamed to its name", path_);
  close(std::exchange(descriptor_, -1));
  flush_directory(fs::path(path_).parent_path().string());
}

void AtomicFile::give_name_back() { file_system().remove(path_); }

void commit_together(std::span<AtomicFile* const> files) {
  for (AtomicFile* file : files) file->flush();
  std::size_t named = 0;
  try {
    for (; named < files.size(); ++named) files[named]->take_name();
  } catch (...) {
    while (named > 0) files[--named]->give_name_back();
    throw;
  }
}

void write_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace penstock::files
