// SPDX-License-Identifier: Apache-2.0
// Files that a command will write at its end, checked at its beginning.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

// Throws InputError naming the flag where a file cannot be made at the path; does nothing for an empty one.
void check_output(const std::string& flag, const std::string& path);

// The same, and refuses a path where there is something already.
void check_new_output(const std::string& flag, const std::string& path);

// A file that a command writes, and the flag that names it.
struct Output {
  std::string flag, path;
};

// Throws InputError where one of the outputs is an input too, a file of a run's directory that is one, or
// another output; empty paths are none.
void check_apart(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);

}  // namespace penstock::cli
