// SPDX-License-Identifier: Apache-2.0
#include "train/record/program_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace penstock::train {
namespace {

// An entry of /proc/self/smaps.
struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  bool of_program = false;  // read-only, private, from a library or the program
  bool changed = false;
};

// "7f00-7f80 r-xp 00000000 08:01 123  /usr/lib/libm.so.6"; other lines begin with a name and a colon.
bool read_mapping(const std::string& line, Mapping& mapping) {
  std::istringstream words(line);
  std::string permissions, offset, device, inode, path;
  char dash = 0;
  if (!(words >> std::hex >> mapping.begin >> dash >> mapping.end >> permissions) || dash != '-')
    return false;
  words >> offset >> device >> inode >> path;
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool code = permissions == "r-xp";
  mapping.of_program =
      path.starts_with('/') && (code || (permissions == "r--p" && name.find(".so") != std::string::npos));
  mapping.changed = false;
  return true;
}

std::vector<Mapping> mappings() {
  std::vector<Mapping> found;
  std::ifstream file("/proc/self/smaps");
  Mapping next;
  for (std::string line; std::getline(file, line);) {
    if (read_mapping(line, next)) {
      found.push_back(next);
    } else if (!found.empty() && line.starts_with("Anonymous:")) {
      found.back().changed = line.find(" 0 kB") == std::string::npos;
    }
  }
  return found;
}

}  // namespace

void release_program_pages() {
  for (const Mapping& mapping : mappings()) {
    if (mapping.of_program && !mapping.changed)
      madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MADV_DONTNEED);
  }
}

}  // namespace penstock::train
