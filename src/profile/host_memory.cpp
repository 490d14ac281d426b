// SPDX-License-Identifier: Apache-2.0
#include "profile/host_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace penstock::profile {
namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Parses "MemTotal:   24573428 kB".
double field(const std::string& meminfo, const std::string& key) {
  const std::size_t at = meminfo.find(key + ":");
  return at == std::string::npos ? 0 : 1024 * std::strtod(meminfo.c_str() + at + key.size() + 1, nullptr);
}

// Parses "inactive_file 1234".
double word(const std::string& stat, const std::string& key) {
  const std::size_t at = ("\n" + stat).find("\n" + key + " ");
  return at == std::string::npos ? 0 : std::strtod(stat.c_str() + at + key.size() + 1, nullptr);
}

}  // namespace

HostMemory parse_host_memory(const std::string& meminfo, const std::string& limit, const std::string& current,
                             const std::string& stat) {
  HostMemory memory{field(meminfo, "MemTotal"), 0};
  memory.used = memory.total - field(meminfo, "MemAvailable");
  const auto group = parse_number(trim(std::string_view(limit).substr(0, limit.find('\n'))));
  if (!group || *group >= memory.total) return memory;
  memory.total = *group;
  memory.used = parse_number(trim(std::string_view(current).substr(0, current.find('\n')))).value_or(0);
  memory.used = std::max(0.0, memory.used - word(stat, "inactive_file") - word(stat, "active_file"));
  memory.used = std::max(memory.used, memory.total - field(meminfo, "MemAvailable"));
  return memory;
}

HostMemory host_memory() {
  return parse_host_memory(text_of("/proc/meminfo"), text_of("/sys/fs/cgroup/memory.max"),
                           text_of("/sys/fs/cgroup/memory.current"), text_of("/sys/fs/cgroup/memory.stat"));
}

}  // namespace penstock::profile
