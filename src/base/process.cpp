// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fstream>
#include <string>

#include "base/text.h"

namespace penstock {

// Reads by getline(): reading a process that has just ended fails, which iterators of the buffer throw.
int parent_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("PPid:\t")) return static_cast<int>(parse_integer(line.substr(6)).value_or(0));
  }
  return 0;
}

}  // namespace penstock
