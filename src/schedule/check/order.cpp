// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/order.h"

#include <algorithm>

#include "schedule/check/wording.h"

namespace penstock::schedule {
namespace {

bool is_pair(const Action& first, const Action& second) {
  const bool computes = is_compute(first.kind) && is_compute(second.kind);
  const int forwards = (first.kind == Kind::Forward) + (second.kind == Kind::Forward);
  return computes && forwards == 1 && !second.overlaps_next;
}

// The ops of one stage on one device.
struct StageOnDevice {
  int device = -1;
  Cell reduction = kNoCell;
  Cell last_backward = kNoCell;
};

class Reductions {
 public:
  Reductions(const UnitTable& table, bool every_stage, Findings& findings)
      : table_(table),
        wording_(table),
        every_stage_(every_stage),
        findings_(findings),
        stages_(table.extent().stages) {}

  void find() {
    for (int device = 0; device < table_.schedule().device_count(); ++device) {
      begun_.clear();
      Cell cell = table_.row_begin(device);
      for (const Action& action : table_.schedule().devices[device]) visit(action, device, cell++);
      for (const int stage : begun_) judge(stage);
    }
  }

 private:
  void visit(const Action& action, int device, Cell cell) {
    if (action.key.stage < 0 || action.key.stage >= std::ssize(stages_)) {
      if (action.kind == Kind::ReduceGradients)
        tell(Rule::Home, cell, " reduces a stage that no device runs");
      return;
    }
    if (action.kind != Kind::ReduceGradients && !is_backward(action.kind) &&
        action.kind != Kind::BackwardWeight)
      return;
    StageOnDevice& stage = stages_[action.key.stage];
    if (stage.device != device) {
      stage = {.device = device};
      begun_.push_back(action.key.stage);
    }
    if (action.kind != Kind::ReduceGradients) {
      stage.last_backward = cell;
    } else if (stage.reduction == kNoCell) {
      stage.reduction = cell;
    } else {
      tell(Rule::Duplicate, cell, " runs a second time, also at " + wording_.where(stage.reduction));
    }
  }

  void judge(int number) {
    const StageOnDevice& stage = stages_[number];
    if (stage.last_backward == kNoCell) {
      tell(Rule::Home, stage.reduction, " reduces a stage whose backward this device does not run");
    } else if (stage.reduction == kNoCell) {
      if (every_stage_) tell_missing(number, stage);
    } else if (stage.reduction < stage.last_backward) {
      tell(Rule::Order, stage.reduction,
           " runs before " + wording_.token(stage.last_backward) + " (" +
               wording_.where(stage.last_backward) + "), whose gradients it must include");
    }
  }

  void tell(Rule rule, Cell cell, const std::string& reason) {
    if (!findings_.full()) findings_.add(wording_.located(rule, cell, reason));
  }

  void tell_missing(int number, const StageOnDevice& stage) {
    if (findings_.full()) return;
    const Action absent{.key = {.stage = number}, .kind = Kind::ReduceGradients};
    findings_.add({Rule::Missing, stage.device, -1, absent,
                   wording_.token(absent) + " is missing: device " + std::to_string(stage.device) +
                       " never runs it, although other gradients are reduced"});
  }

  const UnitTable& table_;
  const Wording wording_;
  const bool every_stage_;
  Findings& findings_;
  std::vector<StageOnDevice> stages_;
  std::vector<int> begun_;  // stages seen on the current device
};

bool has_reductions(const Schedule& schedule) {
  return std::ranges::any_of(schedule.devices, [](const std::vector<Action>& row) {
    return std::ranges::any_of(row, [](const Action& a) { return a.kind == Kind::ReduceGradients; });
  });
}

}  // namespace

void find_misordered(const UnitTable& table, Findings& findings) {
  const Wording wording(table);
  for (int device = 0; device < table.schedule().device_count(); ++device) {
    Cell cell = table.row_begin(device);
    for (const Action& action : table.schedule().devices[device]) {
      for (const Cell need : table.needs(action)) {
        if (need <= cell || need >= table.row_end(device)) continue;
        if (findings.full()) return;
        findings.add(wording.located(
            Rule::Order, cell,
            " runs before " + wording.token(need) + " (" + wording.where(need) + "), which it needs"));
      }
      ++cell;
    }
  }
}

void find_bad_overlaps(const UnitTable& table, Findings& findings) {
  const Wording wording(table);
  for (int device = 0; device < table.schedule().device_count(); ++device) {
    const std::vector<Action>& row = table.schedule().devices[device];
    for (std::size_t i = 0; i < row.size() && !findings.full(); ++i) {
      if (!row[i].overlaps_next) continue;
      const Cell cell = table.row_begin(device) + static_cast<Cell>(i);
      if (i + 1 == row.size() || !is_pair(row[i], row[i + 1])) {
        findings.add(wording.located(
            Rule::Order, cell, " overlaps what follows it, which is not one forward with one backward"));
        continue;
      }
      if (std::ranges::count(table.needs(row[i + 1]), cell) == 0) continue;
      findings.add(
          wording.located(Rule::Order, cell + 1, " needs " + wording.token(cell) + ", which it overlaps"));
      ++i;
    }
  }
}

void find_bad_reductions(const UnitTable& table, bool every_stage, Findings& findings) {
  if (has_reductions(table.schedule())) Reductions(table, every_stage, findings).find();
}

}  // namespace penstock::schedule
