// SPDX-License-Identifier: Apache-2.0
#include "cli/input/output_path.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace penstock::cli {

namespace fs = std::filesystem;

void check_output(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  const std::string said = flag + " " + printable(path, 500);
  std::error_code error;
  if (fs::is_directory(path, error)) throw InputError(said + " is a folder; name a file");
  const std::string parent = fs::path(path).parent_path(), folder = parent.empty() ? "." : parent;
  if (!fs::is_directory(folder, error))
    throw InputError(said + ": there is no folder \"" + printable(folder, 500) + "\"");
  if (access(folder.c_str(), W_OK) != 0)
    throw InputError(said + " cannot be written: " + std::strerror(errno));
}

void check_new_output(const std::string& flag, const std::string& path) {
  check_output(flag, path);
  std::error_code error;
  if (!path.empty() && fs::exists(path, error))
    throw InputError(flag + " " + printable(path, 500) +
                     " is there already; name another file, or remove it");
}

}  // namespace penstock::cli
