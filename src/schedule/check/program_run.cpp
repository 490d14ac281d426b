// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/program_run.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace penstock::schedule {
namespace {

// A lane of a device, numbered across all devices.
using LaneNumber = int;

bool lane_finishes_in_order(LaneNumber lane) { return finishes_in_order(static_cast<Lane>(lane % kLanes)); }

class ProgramRun {
 public:
  ProgramRun(const OpTable& table, const Partners& partners, const Meetings& meetings)
      : table_(table),
        partners_(partners),
        meetings_(meetings),
        queues_(table.program().devices.size() * kLanes),
        next_(queues_.size(), 0),
        started_(table.units().cells(), false),
        done_(table.units().cells(), false),
        waiting_(table.units().cells(), 0) {
    for (Cell cell = 0; cell < table.units().cells(); ++cell) queues_[lane_of_cell(cell)].push_back(cell);
  }

  // Returns true if every op has started.
  bool run() {
    for (LaneNumber lane = 0; lane < std::ssize(queues_); ++lane) ready_.push_back(lane);
    while (!ready_.empty()) {
      const LaneNumber lane = ready_.back();
      ready_.pop_back();
      advance(lane);
    }
    return first_stuck() < 0;
  }

  // The heads of stuck lanes that wait for each other.
  std::vector<Cell> circle() const {
    Cell cell = head(first_stuck());
    for (std::size_t step = 0; step < queues_.size(); ++step) cell = head(lane_of_cell(needed_by(cell)));
    std::vector<Cell> circle{cell};
    for (Cell next = head(lane_of_cell(needed_by(cell))); next != cell;
         next = head(lane_of_cell(needed_by(next)))) {
      circle.push_back(next);
    }
    std::ranges::sort(circle);
    return circle;
  }

  // The op, not started yet, for which the op at the head of a stuck lane waits.
  Cell needed_by(Cell cell) const {
    const Cell unfinished = first_unfinished(cell);
    const Cell waited = unfinished != kNoCell ? unfinished : cell;
    if (!started_[waited]) return waited;
    return meets(waited) ? first_absent(waited) : partners_[waited];
  }

  Cell head_before(Cell cell) const { return head(lane_of_cell(cell)); }

 private:
  LaneNumber lane_of_cell(Cell cell) const {
    const CellPlace at = table_.units().place(cell);
    return at.device * kLanes +
           static_cast<int>(lane_of(table_.program().devices[at.device].ops[at.position].kind));
  }

  Cell head(LaneNumber lane) const { return queues_[lane][next_[lane]]; }

  LaneNumber first_stuck() const {
    for (LaneNumber lane = 0; lane < std::ssize(queues_); ++lane) {
      if (next_[lane] < queues_[lane].size()) return lane;
    }
    return -1;
  }

  Cell first_unfinished(Cell cell) const {
    const CellPlace at = table_.units().place(cell);
    const Cell begin = table_.units().row_begin(at.device);
    const DeviceProgram& device = table_.program().devices[at.device];
    for (const std::uint32_t earlier : device.after_of(device.ops[at.position])) {
      if (!done_[begin + earlier]) return begin + earlier;
    }
    return kNoCell;
  }

  void advance(LaneNumber lane) {
    for (; next_[lane] < queues_[lane].size(); ++next_[lane]) {
      const Cell cell = head(lane);
      if (const Cell need = first_unfinished(cell); need != kNoCell) {
        waiting_[need] |= static_cast<std::uint8_t>(1u << lane % kLanes);
        return;
      }
      if (!started_[cell]) start(cell);
      if (lane_finishes_in_order(lane) && !done_[cell]) return;
    }
  }

  bool meets(Cell cell) const { return meetings_.of[cell] != kNoCell; }

  // The first cell of the collective's meeting that has not started.
  Cell first_absent(Cell cell) const {
    for (const Cell member : meetings_.cells[meetings_.of[cell]]) {
      if (!started_[member]) return member;
    }
    return kNoCell;
  }

  void start(Cell cell) {
    started_[cell] = true;
    if (meets(cell)) {
      if (first_absent(cell) != kNoCell) return;
      for (const Cell member : meetings_.cells[meetings_.of[cell]]) finish(member);
      return;
    }
    const Cell partner = partners_[cell];
    if (partner == kNoCell) {
      finish(cell);
    } else if (started_[partner]) {
      finish(cell);
      finish(partner);
    }
  }

  void finish(Cell cell) {
    done_[cell] = true;
    const LaneNumber own = lane_of_cell(cell);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (waiting_[cell] >> lane & 1) ready_.push_back(own - own % kLanes + lane);
    }
    const bool met = partners_[cell] != kNoCell || meets(cell);
    if (met && lane_finishes_in_order(own)) ready_.push_back(own);
  }

  const OpTable& table_;
  const Partners& partners_;
  const Meetings& meetings_;
  std::vector<std::vector<Cell>> queues_;  // [lane]
  std::vector<std::size_t> next_;          // [lane]
  std::vector<bool> started_;              // [cell]
  std::vector<bool> done_;                 // [cell]
  std::vector<std::uint8_t> waiting_;      // [cell] bit mask of the lanes of its device that wait for it
  std::vector<LaneNumber> ready_;
};

}  // namespace

void find_program_deadlock(const OpTable& table, const Partners& partners, const Meetings& meetings,
                           Findings& findings) {
  ProgramRun run(table, partners, meetings);
  if (run.run()) return;
  for (const Cell cell : run.circle()) {
    if (findings.full()) return;
    const Cell need = run.needed_by(cell);
    const Cell blocker = run.head_before(need);
    std::string text = " waits for " + table.token(table.op(need)) + " (" + table.where(need) + ')';
    if (blocker != need)
      text += ", which comes after " + table.token(table.op(blocker)) + " (" + table.where(blocker) + ')';
    findings.add(table.located(Rule::Deadlock, cell, text + ", which waits in the same cycle"));
  }
}

}  // namespace penstock::schedule
