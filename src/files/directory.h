// SPDX-License-Identifier: Apache-2.0
// Directories that appear whole or not at all. All through the seam (file_system.h).
#pragma once

#include <string>

namespace penstock::files {

// What was made in the directory, or renamed into it, lasts from here on. Best effort: some file systems
// refuse it.
void flush_directory(const std::string& path);

// Makes the directory unless it is there; its parent must exist. Throws RunError naming the path.
void make_directory(const std::string& path);

// Gives a directory whose files have been flushed its final name, under which nothing may be. Throws RunError
// naming it.
void publish_directory(const std::string& temporary, const std::string& path);

// Removes a file, or a directory with all that is in it, as far as it can be.
void remove_all(const std::string& path);

}  // namespace penstock::files
