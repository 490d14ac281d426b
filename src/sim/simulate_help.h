// SPDX-License-Identifier: Apache-2.0
// Event simulation of a program with help (schedule/help.h), which is no longest path: when a device serves
// depends on what arrives: it does so between any two segments of its own work (op_segments.h) and in every
// wait, each request whole. Everything else as in simulate.h, but that each device issues its ops in order,
// as the interpreter does.
#pragma once

#include "sim/simulate.h"

namespace penstock::sim {

Simulation simulate_help(const schedule::Program& program, const Costs& costs);

}  // namespace penstock::sim
