// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/collectives.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "schedule/check/device_judge.h"
#include "schedule/meeting.h"
#include "schedule/units.h"

namespace penstock::schedule {
namespace {

// [device] cells of its collectives with the same members, in order.
using Rows = std::vector<std::vector<Cell>>;

std::map<Members, Rows> collectives_of(const OpTable& table) {
  std::map<Members, Rows> rows;
  for (int device = 0; device < table.program().device_count(); ++device) {
    Cell cell = table.units().row_begin(device);
    for (const Op& op : table.program().devices[device].ops) {
      const Members members = is_collective(op.kind) ? meeting_of(device, op) : Members{device, device};
      if (!members.alone()) {
        Rows& row = rows[members];
        row.resize(table.program().devices.size());
        row[device].push_back(cell);
      }
      ++cell;
    }
  }
  return rows;
}

bool same_collective(const Op& a, const Op& b) {
  return a.kind == b.kind && a.group == b.group && a.bytes == b.bytes &&
         (a.kind != OpKind::VocabularyLoss || a.key == b.key);
}

std::string with_bytes(const Op& op) { return " of " + std::to_string(op.bytes) + " bytes"; }

// Returns whether the two devices issue the same collectives; adds a finding at the first difference.
bool agree(const OpTable& table, const Rows& rows, int first, int device, Findings& findings) {
  const auto &theirs = rows[first], &mine = rows[device];
  const std::size_t both = std::min(theirs.size(), mine.size());
  std::size_t k = 0;
  while (k < both && same_collective(table.op(theirs[k]), table.op(mine[k]))) ++k;
  if (k == std::max(theirs.size(), mine.size())) return true;
  if (findings.full()) return false;
  if (k < both) {
    const Op &other = table.op(theirs[k]), &own = table.op(mine[k]);
    findings.add(table.located(Rule::Unmatched, mine[k],
                               with_bytes(own) + " meets " + table.token(other) + with_bytes(other) + " (" +
                                   table.where(theirs[k]) + "): both are collective " + std::to_string(k) +
                                   " of their members"));
    return false;
  }
  const bool is_mine = k < mine.size();
  findings.add(
      table.located(Rule::Unmatched, is_mine ? mine[k] : theirs[k],
                    " has no collective on device " + std::to_string(is_mine ? first : device) + " to meet"));
  return false;
}

// The state of one unit's weights and gradients on a device.
struct UnitState {
  Cell last_contribution = kNoCell;
  Cell last_use = kNoCell;  // latest use of the weights so far
  Cell gathered = kNoCell;  // the gather since the last release
  Cell released = kNoCell;
  std::map<mesh::Group, Cell> reduced;
};

class DeviceCollectives : DeviceJudge {
 public:
  using DeviceJudge::DeviceJudge;

  void find(bool every_unit) {
    const Cell end = table_.units().row_end(device_);
    for (cell_ = begin_; cell_ < end; ++cell_) foresee(op_at(cell_));
    for (cell_ = begin_; cell_ < end; ++cell_) judge(op_at(cell_));
    for (const auto& [unit, state] : units_) {
      if (every_unit && state.last_contribution != kNoCell && !state.reduced.contains(mesh::Group::Replica))
        tell_missing(unit);
    }
  }

 private:
  int vocabulary() const { return vocabulary_unit(table_.program()); }

  void foresee(const Op& op) {
    if (op.kind == OpKind::VocabularyLoss) has_visits_ = true;
    if (op.kind == OpKind::ReleaseWeights) releases_ = true;
    if (op.kind == OpKind::GatherWeights) gathers_ = true;
    if (adds_weight_gradients(op.kind)) units_[op.key.stage].last_contribution = cell_;
    if (has_visits_ && contributes(table_.program(), op, vocabulary()))
      units_[vocabulary()].last_contribution = cell_;
  }

  void judge(const Op& op) {
    if (is_action(op.kind)) judge_use(units_[op.key.stage]);
    if (has_visits_ && uses_vocabulary(op)) judge_use(units_[vocabulary()]);
    if (op.kind == OpKind::ReduceGradients) judge_reduction(op, units_[op.key.stage]);
    if (op.kind == OpKind::GatherWeights) gather(op);
    if (op.kind == OpKind::ReleaseWeights) release(units_[op.key.stage]);
    if (op.kind == OpKind::OptimizerStep) need_done(last_, Rule::Order);
    if (lane_of(op.kind) == Lane::Collective) last_ = cell_;
  }

  void judge_use(UnitState& unit) {
    unit.last_use = cell_;
    if (!gathers_) return;
    if (unit.gathered != kNoCell) return need_done(unit.gathered, Rule::Residence);
    const bool released = unit.released != kNoCell;
    tell(Rule::Residence, released ? " uses weights that " + text_of(unit.released) + " has released"
                                   : " uses weights before a GATHER_WEIGHTS brings them");
  }

  void gather(const Op& op) {
    units_[op.key.stage].gathered = cell_;
    const auto there = std::ranges::count_if(units_, [&](const auto& entry) {
      return entry.first != vocabulary() && entry.second.gathered != kNoCell;
    });
    if (releases_ && there > 2)
      tell(Rule::Residence, " makes " + std::to_string(there) + " stages gathered at a time; two may be");
  }

  void release(UnitState& unit) {
    need_done(unit.last_use, Rule::Residence);
    unit.released = cell_;
    unit.gathered = kNoCell;
  }

  void judge_reduction(const Op& op, UnitState& unit) {
    const auto [known, first] = unit.reduced.try_emplace(op.group, cell_);
    if (!first) return tell(Rule::Duplicate, " runs a second time, also at " + table_.where(known->second));
    if (unit.last_contribution == kNoCell)
      return tell(Rule::Home, " reduces a stage whose backward this device does not run");
    if (unit.last_contribution < cell_) return need_done(unit.last_contribution, Rule::Order);
    tell(Rule::Order,
         " runs before " + text_of(unit.last_contribution) + ", whose gradients it must include");
  }

  void tell_missing(int stage) {
    const Action absent{.key = {.stage = stage}, .kind = Kind::ReduceGradients};
    findings_.add({Rule::Missing, device_, -1, absent,
                   std::to_string(stage) + "REDUCE_GRAD over replica is missing: device " +
                       std::to_string(device_) + " never runs it, although other gradients are reduced"});
  }

  Cell last_ = kNoCell;  // latest op on the collective lane so far
  bool has_visits_ = false;
  bool releases_ = false;
  bool gathers_ = false;
  std::map<int, UnitState> units_;
};

bool reduces_replicas(const Op& op) {
  return op.kind == OpKind::ReduceGradients && op.group == mesh::Group::Replica;
}

}  // namespace

Meetings match_collectives(const OpTable& table, Findings& findings) {
  Meetings meetings{.cells = {}, .of = std::vector<Cell>(table.units().cells(), kNoCell)};
  for (const auto& [members, rows] : collectives_of(table)) {
    const int first = std::max(members.low, 0);
    bool complete = true;
    for (int device = first + 1; device < std::ssize(rows); ++device) {
      if (members.contain(device)) complete &= agree(table, rows, first, device, findings);
    }
    if (!complete) continue;
    for (std::size_t k = 0; k < rows[first].size(); ++k) {
      std::vector<Cell>& met = meetings.cells.emplace_back();
      for (const std::vector<Cell>& row : rows) {
        if (!row.empty()) met.push_back(row[k]);
      }
      for (const Cell cell : met) meetings.of[cell] = static_cast<Cell>(meetings.cells.size() - 1);
    }
  }
  return meetings;
}

void find_bad_collectives(const OpTable& table, Findings& findings) {
  const auto any = [&](auto fits) {
    return std::ranges::any_of(table.program().devices, [&](const DeviceProgram& device) {
      return std::ranges::any_of(device.ops, fits);
    });
  };
  if (!any([](const Op& op) { return lane_of(op.kind) == Lane::Collective; })) return;
  const bool every_unit = any(reduces_replicas);
  for (int device = 0; device < table.program().device_count(); ++device)
    DeviceCollectives(table, device, findings).find(every_unit);
}

}  // namespace penstock::schedule
