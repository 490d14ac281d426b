// SPDX-License-Identifier: Apache-2.0
// penstock data: describes a run's documents and compares ways to pack them and to cut slices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::cli {

struct DataFlags {
  std::string first, second;  // [LENGTHS] RUN.toml
  std::int64_t steps = 8;
  std::string hardware;
  bool json = false;
  std::vector<std::string> overrides;  // for the run file
};

Exit describe_data(const DataFlags& flags);

}  // namespace penstock::cli
