// SPDX-License-Identifier: Apache-2.0
#include "schedule/check_exchange.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "schedule/passes/compute.h"
#include "schedule/slot_grid.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

// A slot's forwards or its backwards.
using Half = std::pair<int, bool>;

// The half slots of a program's actions, and how many devices run each.
class HalfSlots {
 public:
  HalfSlots(const Program& compute_only, const SlotGrid& grid) {
    for (int device = 0; device < compute_only.device_count(); ++device) {
      const std::vector<Op>& ops = compute_only.devices[device].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].kind == OpKind::BackwardWeight) continue;
        const Half half{grid.slot_of[device][i], is_backward(ops[i].kind)};
        half_of_[{device, half.second, ops[i].stage, ops[i].micro_batch, ops[i].slice}] = half;
        ++devices_in_[half];
      }
    }
  }

  Half of(int device, const Action& action) const {
    return half_of_.at(
        {device, action.kind != Kind::Forward, action.stage, action.micro_batch, action.slice});
  }
  int devices_in(const Half& half) const { return devices_in_.at(half); }

 private:
  std::map<std::tuple<int, bool, int, int, int>, Half> half_of_;
  std::map<Half, int> devices_in_;
};

class Judge {
 public:
  Judge(const OpTable& table, Findings& findings) : table_(table), findings_(findings) {}

  void find() {
    const Program& program = table_.program();
    const Program compute = compute_only(table_.units().schedule());
    const std::optional<SlotGrid> grid = find_slot_grid(compute);
    if (!grid) return tell(program.help.front(), " is in a program whose devices keep no common slots");
    const HalfSlots slots(compute, *grid);
    for (const Help& help : program.help) {
      if (is_possible(help) && is_in_slot(help, slots)) judge_range(help);
    }
    for (const Help& help : program.help) {
      if (gives_.contains({help.owner, key_of(help.of)}))
        tell(help, " is of a device that gives help in the same slot");
    }
  }

 private:
  using Key = std::tuple<bool, int, int, int>;

  static Key key_of(const Action& action) {
    return {action.kind != Kind::Forward, action.stage, action.micro_batch, action.slice};
  }

  void tell(const Help& help, const std::string& reason) {
    if (findings_.full()) return;
    const Cell cell = runs(help.owner, help.of) ? cell_of(help.of) : kNoCell;
    const int position = cell == kNoCell ? -1 : table_.units().place(cell).position;
    findings_.add({Rule::Exchange, help.owner, position, help.of,
                   "help for " + to_token(help.of, true) + " of device " + std::to_string(help.owner) +
                       " by device " + std::to_string(help.helper) + reason});
  }

  Cell cell_of(const Action& action) const {
    const TableEntry& unit = table_.units().unit(action.stage, action.micro_batch, action.slice);
    if (action.kind == Kind::Forward) return unit.forward;
    return action.kind == Kind::Backward ? unit.backward : unit.input;
  }

  bool runs(int device, const Action& action) const {
    if (action.kind == Kind::BackwardWeight || !table_.units().contains(action)) return false;
    const Cell cell = cell_of(action);
    return cell != kNoCell && table_.units().place(cell).device == device;
  }

  bool is_possible(const Help& help) {
    if (help.owner == help.helper) {
      tell(help, " would be its own");
    } else if (!runs(help.owner, help.of)) {
      tell(help, " is for an action that the device does not run");
    } else if (!runs(help.helper, help.during)) {
      tell(help,
           " is to be given during " + to_token(help.during, true) + ", which that device does not run");
    } else {
      return true;
    }
    return false;
  }

  bool is_in_slot(const Help& help, const HalfSlots& slots) {
    const Half half = slots.of(help.owner, help.of);
    if (half != slots.of(help.helper, help.during)) {
      tell(help, " is to be given during " + to_token(help.during, true) + ", which is in another slot");
    } else if (slots.devices_in(half) != table_.program().device_count()) {
      tell(help, " is in a slot of the ramps, where not all devices run the same kind of work");
    } else {
      return true;
    }
    return false;
  }

  void judge_range(const Help& help) {
    gives_.insert({help.helper, key_of(help.during)});
    int& sent = sent_[key_of(help.of)];
    const int end = help.first_half + help.halves;
    const std::string halves =
        " moves halves " + std::to_string(help.first_half) + " to " + std::to_string(end);
    if (help.halves < 1) return tell(help, " moves nothing");
    if (help.first_half != sent)
      return tell(help,
                  halves + "; expected from " + std::to_string(sent) + " on: the oldest first, each once");
    if (end > 2 * help.of.slice)
      return tell(help, halves + "; earlier slices have " + std::to_string(2 * help.of.slice));
    sent = end;
  }

  const OpTable& table_;
  Findings& findings_;
  std::map<Key, int> sent_;  // halves, by owner's action
  std::set<std::pair<int, Key>> gives_;
};

}  // namespace

void find_bad_help(const OpTable& table, Findings& findings) {
  if (!table.program().help.empty()) Judge(table, findings).find();
}

}  // namespace penstock::schedule
