// SPDX-License-Identifier: Apache-2.0
// The repository's hardware files and reference tables.
#pragma once

#include "plan/published/score.h"
#include "sim/hardware_files.h"

namespace penstock::plan {

using sim::read_hardware;
using sim::read_source;

inline Table reference_table(const std::string& name) {
  return Table(read_source("bench/reference/" + name + ".csv"), name);
}

inline HardwareSet reference_hardware() {
  HardwareSet set;
  for (const char* name : {"a100", "a100-vtrain", "a800", "h800"}) set.emplace(name, read_hardware(name));
  return set;
}

}  // namespace penstock::plan
