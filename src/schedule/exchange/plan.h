// SPDX-License-Identifier: Apache-2.0
// Which attention work moves to which device in which slot, decided before the run (SlimPipe, SC'25, context
// exchange; docs/slimpipe.md, "Context exchange").
//
// In one slot the devices of a pipeline attend to caches of unequal length. Attention of a slice against
// EARLIER slices' keys and values may be computed by another device: its owner sends those keys and values,
// its oldest, with its queries, and merges what comes back. The slice's own diagonal block stays at home.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "schedule/program.h"
#include "schedule/slot_grid.h"

namespace penstock::schedule {

enum class ExchangeMode : std::uint8_t {
  Off,
  Paired,    // the paper's: longest with shortest, and so on; whole slices, or halves where work is given
  Levelled,  // one owner may have several partners, and halves of slices move: whole slots become equal
};
std::string_view name_of(ExchangeMode exchange);          // "off", "paired", "levelled"
ExchangeMode parse_exchange_mode(std::string_view name);  // InputError otherwise

// Part of one owner's keys goes to one partner; exchange.h says what is counted.
struct PlannedExchange {
  int slot = 0;
  bool backward = false;
  int owner = 0;                 // device
  int partner = 0;               // device
  std::uint32_t owner_op = 0;    // in the owner's list of the program the plan was made of
  std::uint32_t partner_op = 0;  // what the partner itself runs in that slot
  int first_half = 0;
  int halves = 0;
  friend bool operator==(const PlannedExchange&, const PlannedExchange&) = default;
};

struct ExchangePlan {
  std::vector<PlannedExchange> exchanges;  // by slot, forward before backward, then by owner and first half
};

// The work of a forward or a backward of a slice, in any unit.
struct SliceWork {
  double own = 0;              // stays: products, and the attention to the slice's own keys
  std::vector<double> halves;  // the attention to each half of the earlier slices; none to what is not read
};
using WorkOf = std::function<SliceWork(const PassKey&)>;

// `limit`: K,V slices a device may send in one slot, any number. Slots in which not all devices run the same
// kind of work have no exchange. Without `work` all slices are equally long and every half counts alike.
ExchangePlan plan_exchange(const Program& compute_only, const SlotGrid& grid, ExchangeMode exchange,
                           int limit, const WorkOf& work = {});

}  // namespace penstock::schedule
