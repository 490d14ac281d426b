// SPDX-License-Identifier: Apache-2.0
// Context exchange as a pass: which device attends for which other one, by the slots of the schedule.
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
  int limit = 1000;                                     // K,V slices that a device may send in one slot
  std::function<ExchangeBytes(const Exchange&)> bytes;  // empty: 0
  WorkOf work;                                          // empty: slices are equally long
};

// The exchange of a compute-only program, as exchange/plan.h says; law: check() finds nothing wrong with it,
// no device sends more than the limit in a slot, and without exchange the program is as before. Throws
// InputError when exchange is wanted and the program has no slot grid (schedule/slot_grid.h) or, without
// `work`, micro-batches of different n, naming what would work.
std::vector<Exchange> find_exchanges(const Program& compute_only, const ContextExchange& wanted);

}  // namespace penstock::schedule
