// SPDX-License-Identifier: Apache-2.0
// penstock data: what a run's documents are like, and what each way to pack them and to cut slices comes to.
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
  std::vector<std::string> overrides;  // of the run file
};

Exit describe_data(const DataFlags& flags);

}  // namespace penstock::cli
