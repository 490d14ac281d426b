// SPDX-License-Identifier: Apache-2.0
// The bytes that the passes give to the messages and copies of a program.
#pragma once

#include <memory>

#include "schedule/passes/lower.h"
#include "sim/costs/bytes.h"
#include "sim/costs/table.h"
#include "sim/costs/unit.h"

namespace penstock::sim {

// Transfers, vocabulary visits and embedded parts, for programs whose slices are those of `bytes`.
schedule::Lowering lowering_of(const std::shared_ptr<const RunBytes>& bytes);

// Messages and records as the table has them; the share `offload` of each record leaves, 0 to 1. The table
// outlives the lowering.
schedule::Lowering lowering_of(const CostTable& table, double offload);

// Without a table: all records have so many bytes, messages none.
schedule::Lowering unit_lowering(double offload, Bytes record = kUnitRecord);

}  // namespace penstock::sim
