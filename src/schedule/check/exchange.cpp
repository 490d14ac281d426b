// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/exchange.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "schedule/passes/compute.h"
#include "schedule/slot_grid.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

// The forwards or the backwards of a slot: (slot, backward).
using Half = std::pair<int, bool>;

// The half slots of a program's actions, and the number of devices in each.
class HalfSlots {
 public:
  HalfSlots(const Program& compute_only, const SlotGrid& grid) {
    for (int device = 0; device < compute_only.device_count(); ++device) {
      const std::vector<Op>& ops = compute_only.devices[device].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].kind == OpKind::BackwardWeight) continue;
        const Half half{grid.slot_of[device][i], is_backward(ops[i].kind)};
        half_of_[{device, {half.second, ops[i].key}}] = half;
        ++devices_in_[half];
      }
    }
  }

  Half of(int device, const Action& action) const { return half_of_.at({device, pass_of(action)}); }
  int devices_in(const Half& half) const { return devices_in_.at(half); }

 private:
  std::map<std::pair<int, PassKey>, Half> half_of_;
  std::map<Half, int> devices_in_;
};

class Judge {
 public:
  Judge(const OpTable& table, Findings& findings) : table_(table), findings_(findings) {}

  void find() {
    const Program& program = table_.program();
    const Program compute = compute_only(table_.units().schedule());
    const std::optional<SlotGrid> grid = find_slot_grid(compute);
    if (!grid) return tell(program.exchanges.front(), " is in a program whose devices keep no common slots");
    const HalfSlots slots(compute, *grid);
    for (const Exchange& exchange : program.exchanges) {
      if (is_possible(exchange) && is_in_slot(exchange, slots)) judge_range(exchange);
    }
  }

 private:
  void tell(const Exchange& exchange, const std::string& reason) {
    if (findings_.full()) return;
    const Cell cell = runs(exchange.owner, exchange.of) ? cell_of(exchange.of) : kNoCell;
    const int position = cell == kNoCell ? -1 : table_.units().place(cell).position;
    findings_.add({Rule::Exchange, exchange.owner, position, exchange.of,
                   "exchange for " + to_token(exchange.of, true) + " of device " +
                       std::to_string(exchange.owner) + " by device " + std::to_string(exchange.partner) +
                       reason});
  }

  Cell cell_of(const Action& action) const {
    const TableEntry& unit = table_.units().unit(action.key);
    if (action.kind == Kind::Forward) return unit.forward;
    return action.kind == Kind::Backward ? unit.backward : unit.input;
  }

  bool runs(int device, const Action& action) const {
    if (action.kind == Kind::BackwardWeight || !table_.units().contains(action)) return false;
    const Cell cell = cell_of(action);
    return cell != kNoCell && table_.units().place(cell).device == device;
  }

  bool is_possible(const Exchange& exchange) {
    if (exchange.owner == exchange.partner) {
      tell(exchange, " has the same device on both sides");
    } else if (!runs(exchange.owner, exchange.of)) {
      tell(exchange, " is for an action that the device does not run");
    } else if (!runs(exchange.partner, exchange.during)) {
      tell(exchange,
           " is planned during " + to_token(exchange.during, true) + ", which that device does not run");
    } else {
      return true;
    }
    return false;
  }

  bool is_in_slot(const Exchange& exchange, const HalfSlots& slots) {
    const Half half = slots.of(exchange.owner, exchange.of);
    if (half != slots.of(exchange.partner, exchange.during)) {
      tell(exchange, " is planned during " + to_token(exchange.during, true) + ", which is in another slot");
    } else if (slots.devices_in(half) != table_.program().device_count()) {
      tell(exchange, " is in a slot of the ramps, where not all devices run the same kind of work");
    } else {
      return true;
    }
    return false;
  }

  void judge_range(const Exchange& exchange) {
    int& next = next_.try_emplace(pass_of(exchange.of), std::max(exchange.first_half, 0)).first->second;
    const int end = exchange.first_half + exchange.halves;
    const std::string halves =
        " moves halves " + std::to_string(exchange.first_half) + " to " + std::to_string(end);
    if (exchange.halves < 1) return tell(exchange, " moves nothing");
    if (exchange.first_half != next)
      return tell(exchange,
                  halves + "; expected from " + std::to_string(next) + " on: the oldest first, each once");
    if (end > 2 * exchange.of.key.slice)
      return tell(exchange, halves + "; earlier slices have " + std::to_string(2 * exchange.of.key.slice));
    next = end;
  }

  const OpTable& table_;
  Findings& findings_;
  std::map<PassKey, int> next_;  // [owner's action] expected first half of its next exchange
};

}  // namespace

void find_bad_exchange(const OpTable& table, Findings& findings) {
  if (!table.program().exchanges.empty()) Judge(table, findings).find();
}

}  // namespace penstock::schedule
