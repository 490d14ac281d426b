// SPDX-License-Identifier: Apache-2.0
// Memory available to this process and its control group.
#pragma once

#include <string>
#include <vector>

namespace penstock::profile {

struct HostMemory {
  double total = 0;  // bytes, of the host or of the control group with least room
  double used = 0;   // currently used, by any process
};
HostMemory host_memory();

// The texts of /proc/meminfo, and of a group's files; empty where there is none.
struct MemoryTexts {
  std::string meminfo;
  std::string limit;    // memory.max
  std::string current;  // memory.current
  std::string stat;     // memory.stat
};
// Cached files of the group do not count as used.
HostMemory parse_host_memory(const MemoryTexts& texts);

// The directories of the memory groups that limit a process, innermost first, from its /proc/self/cgroup.
// `root`: where groups are mounted ("/sys/fs/cgroup"). Both versions: a job of Slurm may be in either.
std::vector<std::string> memory_groups(const std::string& cgroup, const std::string& root);

}  // namespace penstock::profile
