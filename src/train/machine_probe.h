// SPDX-License-Identifier: Apache-2.0
// What products on this machine show of it: which kernels it runs, and how fast.
#pragma once

#include "base/units.h"
#include "comm/communicator.h"
#include "model/shape.h"
#include "run/machine.h"

namespace penstock::train {

// The properties that a run's memory and choices depend on; `threads` per rank.
run::Machine probe_machine(int threads);

// Rate of a product of two square matrices, as training in the given precision multiplies them, on this
// thread's share of the cores: the limit for model FLOP/s; the best of some sizes, up to one that takes a
// millisecond. Takes some 20 ms; 0.3 s on a card.
Flops measure_matmul_rate(model::Precision precision);

// This rank's part of the rate of all ranks' devices: its own rate; of ranks that share a card the first has
// the card's, and the others have none. Collective.
Flops measure_part_of_rate(model::Precision precision, comm::Communicator& world);

}  // namespace penstock::train
