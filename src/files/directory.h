// SPDX-License-Identifier: Apache-2.0
// Directories that appear complete or not at all. All calls go through file_system.h.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace penstock::files {

std::string folder_of(const std::string& file);  // "." for a bare name

// What the directory holds, unsorted, as far as it can be read; `error` tells why it cannot. A range-for over
// an iterator would throw where it cannot be read on.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory, std::error_code& error);
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);

// Makes creations and renames in the directory durable. Best effort: some file systems refuse it.
void flush_directory(const std::string& path);

// Creates the directory if missing; its parent must exist. Throws RunError naming the path.
void make_directory(const std::string& path);

// Creates the directory and its missing parents. Returns -1 and sets errno on failure.
int make_directories(const std::string& path);

// Renames a directory, whose files are flushed, to its final name, which must be free. Throws RunError naming
// it.
void publish_directory(const std::string& temporary, const std::string& path);

// Removes a file, or a directory with its contents, as far as possible. What cannot be read or removed is
// left without an error, so that destructors may call this.
void remove_all(const std::string& path);

}  // namespace penstock::files
