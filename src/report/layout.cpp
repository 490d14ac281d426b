// SPDX-License-Identifier: Apache-2.0
#include "report/layout.h"

#include <algorithm>
#include <optional>

#include "schedule/check/complete.h"
#include "schedule/check/run.h"

namespace penstock::report {
namespace {

using schedule::Action;
using schedule::Kind;
using schedule::kNoCell;
using schedule::Schedule;
using schedule::UnitTable;

std::vector<Cell> shown_cells(const std::vector<Action>& row) {
  std::vector<Cell> cells;
  for (int position = 0; position < static_cast<int>(row.size()); ++position) {
    if (row[position].kind != Kind::Idle) cells.push_back({row[position], position, position, position + 1});
  }
  return cells;
}

// Time at which the cells of the group can start: their device is free and their dependencies are done. The
// cells of a pair do not depend on each other.
std::int64_t ready_at(const UnitTable& table, const std::vector<std::int64_t>& ends, schedule::Cell first,
                      schedule::Cell cells, std::int64_t device_free) {
  std::int64_t ready = device_free;
  for (schedule::Cell i = 0; i < cells; ++i) {
    for (const schedule::Cell need : table.needs(table.action(first + i))) {
      if (need != kNoCell) ready = std::max(ready, ends[need]);
    }
  }
  return ready;
}

std::optional<Layout> in_time(const Schedule& schedule, const UnitTable& table, const UnitTimes& times) {
  std::vector<std::int64_t> ends(table.cells(), 0);
  std::vector<std::int64_t> device_free(schedule.devices.size(), 0);
  schedule::ScheduleRun run(table);
  const bool finished = run.run([&](int device, schedule::Cell first, schedule::Cell cells) {
    std::int64_t now = ready_at(table, ends, first, cells, device_free[device]);
    for (schedule::Cell i = 0; i < cells; ++i) {
      const Kind kind = table.action(first + i).kind;
      if (kind == Kind::Idle) return;
      ends[first + i] = now += times.of(kind);
    }
    device_free[device] = now;
  });
  if (!finished) return std::nullopt;
  Layout layout = lay_out_by_position(schedule);
  layout.in_time = true;
  layout.end = 0;
  for (int device = 0; device < schedule.device_count(); ++device) {
    for (Cell& cell : layout.devices[device]) {
      cell.end = ends[table.row_begin(device) + static_cast<schedule::Cell>(cell.position)];
      cell.start = cell.end - times.of(cell.action.kind);
      layout.end = std::max(layout.end, cell.end);
    }
  }
  return layout;
}

}  // namespace

int UnitTimes::of(Kind kind) const {
  switch (kind) {
    case Kind::Forward:
      return forward;
    case Kind::Backward:
      return backward;
    case Kind::BackwardInput:
      return input;
    case Kind::BackwardWeight:
      return weight;
    case Kind::ReduceGradients:
      return reduction;
    case Kind::Idle:
      return 0;
  }
  return 0;
}

std::string describe(const UnitTimes& times) {
  return "F = " + std::to_string(times.forward) + ", B = " + std::to_string(times.backward) +
         ", I = " + std::to_string(times.input) + ", W = " + std::to_string(times.weight);
}

Layout lay_out_by_position(const Schedule& schedule) {
  Layout layout{.devices = {}, .in_time = false};
  for (const std::vector<Action>& row : schedule.devices) {
    layout.devices.push_back(shown_cells(row));
    layout.end = std::max(layout.end, static_cast<std::int64_t>(row.size()));
  }
  return layout;
}

Layout lay_out(const Schedule& schedule, const UnitTimes& times) {
  schedule::Findings ignored(1);
  const std::optional<UnitTable> table = schedule::tabulate(schedule, ignored);
  if (!table) return lay_out_by_position(schedule);
  return in_time(schedule, *table, times).value_or(lay_out_by_position(schedule));
}

}  // namespace penstock::report
