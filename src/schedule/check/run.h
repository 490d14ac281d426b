// SPDX-License-Identifier: Apache-2.0
// Runs a schedule without times: every device walks its row and waits for the dependencies of its next
// action. A dependency that no device runs is ignored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/interruption.h"
#include "schedule/check/table.h"

namespace penstock::schedule {

class ScheduleRun {
 public:
  explicit ScheduleRun(const UnitTable& table)
      : table_(table),
        done_(table.cells(), false),
        waits_for_(table.schedule().devices.size(), kNoCell),
        waiting_(table.schedule().devices.size()) {
    for (int device = 0; device < table.schedule().device_count(); ++device) {
      next_.push_back(table.row_begin(device));
      ready_.push_back(device);
    }
  }

  // Calls start(device, first cell, cells) for every action or overlapped pair, in an order that respects all
  // dependencies. Returns true if every device reaches its end.
  template <typename Start>
  bool run(Start start) {
    while (!ready_.empty()) {
      allow_interruption();
      const int device = ready_.back();
      ready_.pop_back();
      advance(device, start);
      wake(device);
    }
    return std::ranges::all_of(waits_for_, [](Cell cell) { return cell == kNoCell; });
  }

  // After a run that got stuck: the device's next cell, and the first unmet dependency of its next action
  // (kNoCell if the device reached its end).
  Cell stands_at(int device) const { return next_[device]; }
  Cell waits_for(int device) const { return waits_for_[device]; }

 private:
  template <typename Start>
  void advance(int device, Start& start) {
    const std::vector<Action>& row = table_.schedule().devices[device];
    const Cell begin = table_.row_begin(device);
    Cell& next = next_[device];
    waits_for_[device] = kNoCell;
    while (next < table_.row_end(device)) {
      const bool pair = row[next - begin].overlaps_next && next + 1 < table_.row_end(device);
      const Cell cells = pair ? 2 : 1;
      for (Cell i = 0; i < cells; ++i) {
        const Cell need = unmet(row[next + i - begin]);
        if (need == kNoCell) continue;
        waits_for_[device] = need;
        waiting_[table_.place(need).device].push_back(device);
        return;
      }
      start(device, next, cells);
      for (Cell i = 0; i < cells; ++i) done_[next++] = true;
    }
  }

  Cell unmet(const Action& action) const {
    for (const Cell need : table_.needs(action)) {
      if (need != kNoCell && !done_[need]) return need;
    }
    return kNoCell;
  }

  void wake(int device) {
    std::erase_if(waiting_[device], [&](int other) {
      const bool met = done_[waits_for_[other]];
      if (met) ready_.push_back(other);
      return met;
    });
  }

  const UnitTable& table_;
  std::vector<bool> done_;                 // [cell]
  std::vector<Cell> next_;                 // [device]
  std::vector<Cell> waits_for_;            // [device]
  std::vector<std::vector<int>> waiting_;  // [device] devices that wait for one of its cells
  std::vector<int> ready_;
};

}  // namespace penstock::schedule
