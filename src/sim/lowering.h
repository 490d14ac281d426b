// SPDX-License-Identifier: Apache-2.0
// The bytes that the passes assign to the messages and copies of a program.
#pragma once

#include <memory>

#include "schedule/passes/lower.h"
#include "sim/costs/bytes.h"
#include "sim/costs/table.h"
#include "sim/costs/unit.h"

namespace penstock::sim {

// Bytes of transfers, LOSS and embedding transfers, for programs with the slices of `bytes`.
schedule::Lowering lowering_of(const std::shared_ptr<const RunBytes>& bytes);

// Messages and records from the table. `offload`: offloaded fraction of each record, 0 to 1. Throws
// InputError if no record has bytes to offload: the copies would look free. The table must outlive the
// lowering.
schedule::Lowering lowering_of(const CostTable& table, double offload);

// Without a table: every record has `record` bytes, messages have none.
schedule::Lowering unit_lowering(double offload, Bytes record = kUnitRecord);

}  // namespace penstock::sim
