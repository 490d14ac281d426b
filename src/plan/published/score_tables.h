// SPDX-License-Identifier: Apache-2.0
// One function per table format (score.h).
#pragma once

#include "model/memory/terms.h"
#include "plan/published/score.h"

namespace penstock::plan {

Score score_kwai_memory(const Table& table);
Score score_slimpipe_planner(const Table& table);
Score score_kwai_throughput(const Table& table, const KnownMachines& known);
Score score_calculon(const Table& table, const KnownMachines& known);
Score score_vtrain(const Table& table, const KnownMachines& known);
bool is_throughput(const Table& table);
Score score_throughput(const Table& table, const KnownMachines& known);

// The hardware or engine of that name. Throw InputError if it is missing.
const sim::Hardware& find_hardware(const HardwareSet& hardware, const std::string& name);
const sim::Engine& find_engine(const EngineSet& engines, const std::string& name);

}  // namespace penstock::plan
