// SPDX-License-Identifier: Apache-2.0
// Context exchange as a pass: which device computes attention for which other one, planned on the slots.
#pragma once

#include <functional>
#include <vector>

#include "schedule/exchange/plan.h"
#include "schedule/program.h"

namespace penstock::schedule {

// Bytes of one exchange over all layers of its op.
struct ExchangeBytes {
  Bytes request = 0;
  Bytes reply = 0;
};

struct ContextExchange {
  ExchangeMode mode = ExchangeMode::Off;
  int limit = 1000;  // maximum number of K,V slices that a device sends in one slot
  std::function<ExchangeBytes(const Exchange&)> bytes;  // empty: 0
  WorkOf work;                                          // empty: slices are equally long
};

// Returns the exchanges of a compute-only program, as plan_exchange (exchange/plan.h) plans them. Law: they
// pass check(), no device sends more than the limit in a slot, and with mode Off there are none. Throws
// InputError, with what would work, if exchange is on and the program has no slot grid
// (schedule/slot_grid.h) or, without `work`, micro-batches of different n.
std::vector<Exchange> find_exchanges(const Program& compute_only, const ContextExchange& wanted);

}  // namespace penstock::schedule
