// SPDX-License-Identifier: Apache-2.0
#include "cli/input/output_path.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "files/directory.h"
#include "files/run_files.h"

namespace penstock::cli {

namespace fs = std::filesystem;

namespace {

// Also under other names, and if neither file exists yet.
bool is_one_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

bool is_read_from(const std::string& input, const std::string& output) {
  if (is_one_file(output, input)) return true;
  std::error_code error;
  return !output.empty() && fs::is_directory(input, error) &&
         std::ranges::any_of(files::entries_that(&files::RunEntry::read), [&](const char* name) {
           return is_one_file(output, (fs::path(input) / name).string());
         });
}

bool is_empty_or_begins(const std::string& path, std::string_view begins) {
  std::ifstream file(path, std::ios::binary);
  std::string first(begins.size(), '\0');
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  return file.gcount() == 0 || (file && first == begins);
}

}  // namespace

void check_output(const std::string& flag, const std::string& path, std::string_view begins) {
  if (path.empty()) return;
  const std::string said = flag + " " + printable(path, 500);
  std::error_code error;
  if (fs::is_directory(path, error)) throw InputError(said + " is a folder; name a file");
  if (fs::exists(path, error)) {
    if (!fs::is_regular_file(path, error))
      throw InputError(said + " is not a regular file, and would be replaced by one; name another");
    if (!is_empty_or_begins(path, begins))
      throw InputError(said + " holds something else, which would be lost; name another file, or remove it");
  }
  const std::string folder = files::folder_of(path);
  if (!fs::is_directory(folder, error))
    throw InputError(said + ": there is no folder \"" + printable(folder, 500) + "\"");
  if (access(folder.c_str(), W_OK) != 0)
    throw InputError(said + " cannot be written: " + std::strerror(errno));
}

void check_new_output(const std::string& flag, const std::string& path) {
  check_output(flag, path);
  std::error_code error;
  if (!path.empty() && fs::exists(path, error))
    throw InputError(flag + " " + printable(path, 500) + " already exists; name another file, or remove it");
}

void check_apart(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string said = outputs[i].flag + " " + printable(outputs[i].path, 500);
    for (const std::string& input : inputs) {
      if (is_read_from(input, outputs[i].path))
        throw InputError(said + " is read by this command, and would be lost; name another file");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (is_one_file(outputs[i].path, outputs[j].path))
        throw InputError(said + " is also the file of " + outputs[j].flag + "; name another");
    }
  }
}

}  // namespace penstock::cli
