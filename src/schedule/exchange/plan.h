// SPDX-License-Identifier: Apache-2.0
// Plans before the run which attention work moves to which device in which slot (SlimPipe, SC'25, context
// exchange; docs/slimpipe.md, "Context exchange").
//
// In one slot the devices of a pipeline attend to KV caches of unequal length. Another device may compute the
// attention of a slice over EARLIER slices' keys and values: the owner sends its oldest keys and values with
// its queries and merges the result. The slice's own diagonal block stays on its device.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "schedule/program.h"
#include "schedule/slot_grid.h"

namespace penstock::schedule {

enum class ExchangeMode : std::uint8_t {
  Off,
  Paired,    // the paper's: longest with shortest, and so on; moves whole slices, or halves if `work` is set
  Levelled,  // an owner may have several partners, and half slices move: balances the whole slot
};
std::string_view name_of(ExchangeMode exchange);          // "off", "paired", "levelled"
ExchangeMode parse_exchange_mode(std::string_view name);  // InputError otherwise

// Part of one owner's keys goes to one partner. Halves are counted as in schedule/exchange.h.
struct PlannedExchange {
  int slot = 0;
  bool backward = false;
  int owner = 0;                 // device
  int partner = 0;               // device
  std::uint32_t owner_op = 0;    // index into the owner's list of the planned program
  std::uint32_t partner_op = 0;  // the partner's own op in that slot, likewise
  int first_half = 0;
  int halves = 0;
  friend bool operator==(const PlannedExchange&, const PlannedExchange&) = default;
};

struct ExchangePlan {
  std::vector<PlannedExchange> exchanges;  // by slot, forward before backward, then by owner and first half
};

// The work of a slice's forward or backward, in any unit.
struct SliceWork {
  double own = 0;              // not movable: products, and the attention over the slice's own keys
  std::vector<double> halves;  // the attention over each half of the earlier slices; 0 if it is not read
};
using WorkOf = std::function<SliceWork(const PassKey&)>;

// `limit`: upper bound of the K,V slices a device sends in one slot; any value. Only slots in which all
// devices run the same kind of work have exchange. Without `work`, all slices and all halves count alike.
ExchangePlan plan_exchange(const Program& compute_only, const SlotGrid& grid, ExchangeMode exchange,
                           int limit, const WorkOf& work = {});

}  // namespace penstock::schedule
