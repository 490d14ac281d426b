// SPDX-License-Identifier: Apache-2.0
#include "files/directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "files/file_system.h"

namespace penstock::files {

namespace fs = std::filesystem;

std::string folder_of(const std::string& file) {
  const std::string parent = fs::path(file).parent_path().string();
  return parent.empty() ? "." : parent;
}

void flush_directory(const std::string& path) {
  const int descriptor = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  file_system().flush(descriptor);
  close(descriptor);
}

void make_directory(const std::string& path) {
  if (file_system().make_directory(path) == 0 || errno == EEXIST) return;
  fail_to("cannot be made", path);
}

int make_directories(const std::string& path) {
  fs::path there;
  for (const fs::path& name : fs::path(path)) {
    there /= name;
    std::error_code error;
    if (fs::is_directory(there, error)) continue;
    if (file_system().make_directory(there.string()) != 0 && errno != EEXIST) return -1;
  }
  return 0;
}

std::vector<fs::path> entries_of(const fs::path& directory, std::error_code& error) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::error_code ignored;
  return entries_of(directory, ignored);
}

void publish_directory(const std::string& temporary, const std::string& path) {
  flush_directory(temporary);
  if (file_system().rename(temporary, path) != 0) fail_to("cannot be given its name", path);
  flush_directory(fs::path(path).parent_path().string());
}

void remove_all(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) {
    for (const fs::path& entry : entries_of(path)) remove_all(entry.string());
  }
  file_system().remove(path);
}

}  // namespace penstock::files
