// SPDX-License-Identifier: Apache-2.0
#include "train/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/text.h"
#include "comm/launcher.h"

namespace penstock::train {
namespace {

// The value of the first line "key : value" of /proc/cpuinfo.
std::string processor_field(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trim(line.substr(0, colon)) != key) continue;
    return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

std::string best_instructions(const std::string& flags) {
  const std::string padded = " " + flags + " ";
  for (const char* name : {"amx_bf16", "avx512_bf16", "avx512f", "avx2"}) {
    if (padded.find(" " + std::string(name) + " ") != std::string::npos) return name;
  }
  return "no wide vectors";
}

}  // namespace

Host this_host() {
  const std::string name = processor_field("model name");
  const long pages = sysconf(_SC_PHYS_PAGES);
  return {.processor = name.empty() ? "unknown processor" : name,
          .instructions = best_instructions(processor_field("flags")),
          .cores = std::max(1, comm::usable_processors()),
          .memory = pages > 0 ? static_cast<Bytes>(pages) * sysconf(_SC_PAGESIZE) : 0};
}

}  // namespace penstock::train
