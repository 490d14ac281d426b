// SPDX-License-Identifier: Apache-2.0
// What products on this machine show of it: which kernels it runs, and how fast.
#pragma once

#include "base/units.h"
#include "model/shape.h"
#include "run/machine.h"

namespace penstock::train {

// The properties that a run's memory and choices depend on; `threads` per rank.
run::Machine probe_machine(int threads);

// Rate of a product of two square matrices in the given precision on this thread's share of the cores: the
// limit for model FLOP/s; the best of some sizes. Takes about 0.1 s.
Flops measure_matmul_rate(model::Precision precision);

// One product in f32, of at most 2,048 × 512 by 512 × 8,192: after it this thread and its helpers have the
// buffers of packed operands that the library keeps, some MiB a thread, and larger products need no more. A
// product that needs larger ones leaves the smaller in place, so this comes before others.
void fill_product_buffers(std::int64_t rows, std::int64_t inner, std::int64_t columns);

}  // namespace penstock::train
