// SPDX-License-Identifier: Apache-2.0
// The cells of the F, B, I and W of every (stage, micro-batch, slice), and the dependencies of each.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedule/check/extent.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

// Cells are numbered across all rows.
using Cell = std::uint32_t;
inline constexpr Cell kNoCell = static_cast<Cell>(-1);

struct CellPlace {
  int device = -1;
  int position = -1;
};

// The cells of one (stage, micro-batch, slice). Of duplicates the first counts, unless tabulate() swaps them.
struct TableEntry {
  Cell forward = kNoCell;
  Cell backward = kNoCell;
  Cell input = kNoCell;
  Cell weight = kNoCell;

  // The cell that passes the gradient on: the B or I.
  Cell gradient() const { return backward != kNoCell ? backward : input; }
  Cell& of(Kind kind) {
    if (kind == Kind::Forward) return forward;
    if (kind == Kind::Backward) return backward;
    return kind == Kind::BackwardInput ? input : weight;
  }
};

// Keeps a reference to the schedule, which must outlive it.
class UnitTable {
 public:
  UnitTable(const Schedule& schedule, Extent extent);

  const Schedule& schedule() const { return schedule_; }
  const Extent& extent() const { return extent_; }

  bool contains(const Action& action) const {
    return is_compute(action.kind) && extent_.contains(action.key);
  }
  const TableEntry& unit(const Key& key) const { return units_[extent_.index(key)]; }
  TableEntry& unit(const Key& key) { return units_[extent_.index(key)]; }

  Cell row_begin(int device) const { return row_begin_[device]; }
  Cell row_end(int device) const { return row_begin_[device + 1]; }
  Cell cells() const { return row_begin_.back(); }
  CellPlace place(Cell cell) const;
  const Action& action(Cell cell) const;

  // The cells that must be done before the action starts; kNoCell if not needed, or if no device runs it.
  std::array<Cell, 3> needs(const Action& action) const;

 private:
  const Schedule& schedule_;
  Extent extent_;
  std::vector<Cell> row_begin_;  // [device]; one more at the end
  std::vector<TableEntry> units_;
};

}  // namespace penstock::schedule
