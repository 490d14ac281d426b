// SPDX-License-Identifier: Apache-2.0
#include "train/resident.h"

#include <fstream>
#include <string>

namespace penstock::train {

Resident resident_memory() {
  Resident resident;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    Bytes* wanted = key == "VmRSS:" ? &resident.now : key == "VmHWM:" ? &resident.peak : nullptr;
    if (wanted && status >> *wanted) *wanted *= KiB;
    status.ignore(1 << 20, '\n');
  }
  return resident;
}

}  // namespace penstock::train
