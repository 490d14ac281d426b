// SPDX-License-Identifier: Apache-2.0
// One function per shape of table (score.h).
#pragma once

#include "model/memory_terms.h"
#include "plan/score.h"

namespace penstock::plan {

Score score_kwai_memory(const Table& table);
Score score_slimpipe_planner(const Table& table);
Score score_kwai_throughput(const Table& table, const HardwareSet& hardware);
Score score_calculon(const Table& table, const HardwareSet& hardware);
Score score_vtrain(const Table& table, const HardwareSet& hardware);

// The hardware of that name; throws InputError when the set lacks it.
const Hardware& find_hardware(const HardwareSet& hardware, const std::string& name);

// The columns tp, cp, ep, dp and pp, as far as the table has them.
model::Spread spread_of(const Table& table, std::size_t row);
std::string print_spread(const model::Spread& spread);  // "t4 c2 p8 d4"

}  // namespace penstock::plan
