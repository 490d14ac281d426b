// SPDX-License-Identifier: Apache-2.0
// Memory available to this process and its control group.
#pragma once

#include <string>

namespace penstock::profile {

struct HostMemory {
  double total = 0;  // bytes, of the host or, if less, of the control group
  double used = 0;   // currently used, by any process
};
HostMemory host_memory();

// Parses /proc/meminfo and the group's memory.max, memory.current and memory.stat (may be empty). Cached
// files of the group do not count as used.
HostMemory parse_host_memory(const std::string& meminfo, const std::string& limit, const std::string& current,
                             const std::string& stat = {});

}  // namespace penstock::profile
