// SPDX-License-Identifier: Apache-2.0
// The machine a rank runs on: named in every start table and result, since bits and speed depend on it.
#pragma once

#include <string>

#include "base/units.h"
#include "model/shape.h"

namespace penstock::train {

struct Machine {
  std::string processor;     // as /proc/cpuinfo names it
  std::string instructions;  // what matters for matrix products: "avx2", "avx512", "avx512_bf16", "amx_bf16"
  int cores = 1;             // that this process may use
  Bytes memory = 0;          // of the host; 0: unknown
};
Machine this_machine();

// Rate of a product of two square matrices in the given precision on this thread's share of the cores: the
// limit that model FLOP/s are shown beside. Takes about a fifth of a second.
Flops measure_matmul_rate(model::Precision precision);

}  // namespace penstock::train
