// SPDX-License-Identifier: Apache-2.0
// The machine a rank runs on: recorded in every start table and result, since bits and speed depend on it.
#pragma once

#include <string>

#include "base/units.h"
#include "model/shape.h"
#include "run/machine.h"

namespace penstock::train {

struct Host {
  std::string processor;     // as /proc/cpuinfo names it
  std::string instructions;  // relevant to matrix products: "avx2", "avx512", "avx512_bf16", "amx_bf16"
  int cores = 1;             // that this process may use
  Bytes memory = 0;          // of the host; 0: unknown
};
Host this_host();

// The properties that a run's memory and choices depend on; `threads` per rank.
run::Machine probe_machine(int threads);

// Rate of a product of two square matrices in the given precision on this thread's share of the cores: the
// limit for model FLOP/s; the best of some sizes. Takes about 0.1 s.
Flops measure_matmul_rate(model::Precision precision);

}  // namespace penstock::train
