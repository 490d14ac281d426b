// SPDX-License-Identifier: Apache-2.0
// The machine a rank runs on: recorded in every start table and result, since bits and speed depend on it.
#pragma once

#include <string>

#include "base/units.h"

namespace penstock::train {

struct Host {
  std::string processor;     // as /proc/cpuinfo names it
  std::string instructions;  // best for matrix products: "avx2", "avx512f", "avx512_bf16", "amx_bf16"
  int cores = 1;             // usable by this process
  Bytes memory = 0;          // of the host; 0: unknown
};
Host this_host();

}  // namespace penstock::train
