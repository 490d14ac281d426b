// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace penstock::schedule {

UnitTable::UnitTable(const Schedule& schedule, Extent extent)
    : schedule_(schedule), extent_(std::move(extent)), row_begin_{0} {
  std::uint64_t cells = 0;
  for (const std::vector<Action>& row : schedule.devices) {
    cells += row.size();
    PENSTOCK_CHECK(cells < kNoCell, "cells are numbered in 32 bits");
    row_begin_.push_back(static_cast<Cell>(cells));
  }
  units_.resize(static_cast<std::size_t>(extent_.stages * extent_.slices()));
  for (int device = 0; device < schedule.device_count(); ++device) {
    Cell cell = row_begin_[device];
    for (const Action& action : schedule.devices[device]) {
      if (contains(action)) {
        Cell& slot = unit(action.key).of(action.kind);
        if (slot == kNoCell) slot = cell;
      }
      ++cell;
    }
  }
}

CellPlace UnitTable::place(Cell cell) const {
  const auto next = std::upper_bound(row_begin_.begin(), row_begin_.end(), cell);
  const auto device = static_cast<int>(next - row_begin_.begin()) - 1;
  return {device, static_cast<int>(cell - row_begin_[device])};
}

const Action& UnitTable::action(Cell cell) const {
  const CellPlace at = place(cell);
  return schedule_.devices[at.device][at.position];
}

std::array<Cell, 3> UnitTable::needs(const Action& action) const {
  std::array<Cell, 3> cells{kNoCell, kNoCell, kNoCell};
  if (!contains(action)) return cells;
  const auto [stage, j, i] = action.key;
  if (action.kind == Kind::Forward) {
    if (stage > 0) cells[0] = unit(action.key.at_stage(stage - 1)).forward;
    if (i > 0) cells[1] = unit(make_key(stage, j, i - 1)).forward;
  } else if (action.kind == Kind::BackwardWeight) {
    cells[0] = unit(action.key).input;
  } else {
    cells[0] = unit(action.key).forward;
    if (stage + 1 < extent_.stages) cells[1] = unit(action.key.at_stage(stage + 1)).gradient();
    if (i + 1 < extent_.slices_of(j)) cells[2] = unit(make_key(stage, j, i + 1)).gradient();
  }
  return cells;
}

}  // namespace penstock::schedule
