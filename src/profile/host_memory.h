// SPDX-License-Identifier: Apache-2.0
// Memory that this process and its like may use.
#pragma once

#include <string>

namespace penstock::profile {

struct HostMemory {
  double total = 0;  // bytes: of the host, or of the control group where that is less
  double used = 0;   // of it, by whatever runs now
};
HostMemory host_memory();

// From the texts of /proc/meminfo and of the group's memory.max and memory.current (may be empty).
HostMemory parse_host_memory(const std::string& meminfo, const std::string& limit,
                             const std::string& current);

}  // namespace penstock::profile
