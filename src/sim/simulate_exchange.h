// SPDX-License-Identifier: Apache-2.0
// Event simulation of a program with exchange (schedule/exchange.h). It is no longest path, because
// a device serves requests as they arrive: between any two segments of its own work (segments.h) and in every
// wait, each request whole. All else is as in simulate.h, except that each device issues its ops in order, as
// the interpreter does, and issues a collective when those before it have met.
#pragma once

#include "sim/simulate.h"

namespace penstock::sim {

Simulation simulate_exchange(const schedule::Program& program, const Costs& costs);

}  // namespace penstock::sim
