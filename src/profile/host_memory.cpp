// SPDX-License-Identifier: Apache-2.0
#include "profile/host_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace penstock::profile {
namespace {

std::string text_of(const std::string& path) {
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

HostMemory parse_host_memory(const MemoryTexts& texts) {
  const auto& [meminfo, limit, current, stat] = texts;
  HostMemory memory{field(meminfo, "MemTotal"), 0};
  memory.used = memory.total - field(meminfo, "MemAvailable");
  const auto group = parse_number(trim(std::string_view(limit).substr(0, limit.find('\n'))));
  if (!group || *group >= memory.total) return memory;
  memory.total = *group;
  memory.used = parse_number(trim(std::string_view(current).substr(0, current.find('\n')))).value_or(0);
  for (const char* cached : {"inactive_file", "active_file"})
    memory.used -= std::max(word(stat, cached), word(stat, std::string("total_") + cached));
  memory.used = std::max(memory.used, memory.total - field(meminfo, "MemAvailable"));
  return memory;
}

std::vector<std::string> memory_groups(const std::string& cgroup, const std::string& root) {
  std::vector<std::string> groups;
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {  // "0::/path", or "5:memory:/path" of version 1
    const std::size_t names = line.find(':'), path = line.find(':', names + 1);
    if (names == std::string::npos || path == std::string::npos) continue;
    const std::string controllers = "," + line.substr(names + 1, path - names - 1) + ",";
    const bool second = controllers == ",,";
    if (!second && controllers.find(",memory,") == std::string::npos) continue;
    const std::string mount = root + (second ? "" : "/memory");
    std::string group = line.substr(path + 1);
    for (; group.size() > 1; group.resize(group.rfind('/'))) groups.push_back(mount + group);
    groups.push_back(mount);
  }
  return groups;
}

HostMemory host_memory() {
  const std::string meminfo = text_of("/proc/meminfo");
  HostMemory least = parse_host_memory({.meminfo = meminfo, .limit = {}, .current = {}, .stat = {}});
  for (const std::string& group : memory_groups(text_of("/proc/self/cgroup"), "/sys/fs/cgroup")) {
    const bool second = std::filesystem::exists(group + "/memory.max");
    const HostMemory memory = parse_host_memory(
        {.meminfo = meminfo,
         .limit = text_of(group + (second ? "/memory.max" : "/memory.limit_in_bytes")),
         .current = text_of(group + (second ? "/memory.current" : "/memory.usage_in_bytes")),
         .stat = text_of(group + "/memory.stat")});
    if (memory.total - memory.used < least.total - least.used) least = memory;
  }
  return least;
}

}  // namespace penstock::profile
