// SPDX-License-Identifier: Apache-2.0
// Probes the machine: which matrix-product kernels it runs, and how fast.
#pragma once

#include "base/units.h"
#include "comm/communicator.h"
#include "model/shape.h"
#include "run/machine.h"

namespace penstock::train {

// Returns the machine's properties that a run's memory and choices depend on. `threads`: per rank.
run::Machine probe_machine(int threads);

// Measures the rate of square matrix products with the operand type that training uses for `precision`, on
// this thread's share of the cores: the upper bound for model FLOP/s. Takes the best of several sizes, up to
// one that takes a millisecond. Runs for 20 to 60 ms; 0.3 s on a GPU.
Flops measure_matmul_rate(model::Precision precision);

// This rank's contribution to the total rate of all ranks' devices: its own rate. Of ranks that share a GPU,
// the first contributes the GPU's rate and the others 0. Collective.
Flops measure_part_of_rate(model::Precision precision, comm::Communicator& world);

}  // namespace penstock::train
