// SPDX-License-Identifier: Apache-2.0
// Every way to spoil one cell of a schedule, as its CSV would then be read.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/text.h"

namespace penstock::schedule {

struct Corruption {
  std::string what;
  Schedule schedule;
  bool surely_illegal = true;  // a swap of independent neighbours may leave a legal schedule
};

class Corruptor {
 public:
  explicit Corruptor(const Schedule& schedule) : schedule_(schedule) {}

  // Of the action at the place; empty for idle cells.
  std::vector<Corruption> at(int device, int position) {
    spoiled_.clear();
    const Action action = schedule_.devices[device][position];
    if (action.kind == Kind::Idle) return {};
    remove(device, position);
    duplicate(device, position);
    swap_with_next(device, position);
    for (const int stage :
         {action.key.stage - 1, action.key.stage + 1, schedule_.stages, schedule_.stages + 70}) {
      change(
          device, position, [&](Action& a) { a.key.stage = stage; }, stage);
    }
    if (!is_compute(action.kind)) return spoiled_;
    for (const int j :
         {action.key.micro_batch - 1, action.key.micro_batch + 1, schedule_.micro_batches() + 3}) {
      change(
          device, position, [&](Action& a) { a.key.micro_batch = j; }, j);
    }
    for (const int i : {action.key.slice - 1, action.key.slice + 1}) {
      change(
          device, position, [&](Action& a) { a.key.slice = static_cast<std::int16_t>(i); }, i);
    }
    return spoiled_;
  }

 private:
  using Row = std::vector<Action>;

  void add(const std::string& what, int device, int position, Schedule changed, bool surely_illegal = true) {
    const std::string token = to_token(schedule_.devices[device][position], true);
    const Schedule read = parse_csv(to_csv(changed), "spoiled");
    spoiled_.push_back({what + ' ' + token + " on device " + std::to_string(device), read, surely_illegal});
  }

  bool is_second_of_pair(const Row& row, int position) const {
    return position > 0 && row[position - 1].overlaps_next;
  }

  void remove(int device, int position) {
    Schedule changed = schedule_;
    Row& row = changed.devices[device];
    if (is_second_of_pair(row, position)) row[position - 1].overlaps_next = false;
    row.erase(row.begin() + position);
    const bool last_reduction =
        schedule_.devices[device][position].kind == Kind::ReduceGradients && schedule_.stages == 1;
    add("delete", device, position, changed, !last_reduction);
  }

  void duplicate(int device, int position) {
    Action copy = schedule_.devices[device][position];
    copy.overlaps_next = false;
    Schedule behind = schedule_;
    behind.devices[device].push_back(copy);
    add("repeat at the end", device, position, behind);
    Schedule before = schedule_;
    Row& other = before.devices[(device + 1) % schedule_.device_count()];
    other.insert(other.begin(), copy);
    add("repeat elsewhere", device, position, before);
  }

  void swap_with_next(int device, int position) {
    Schedule changed = schedule_;
    Row& row = changed.devices[device];
    if (position + 1 >= std::ssize(row) || row[position].overlaps_next || row[position + 1].overlaps_next)
      return;
    if (is_second_of_pair(row, position)) return;
    std::swap(row[position], row[position + 1]);
    add("swap", device, position, changed, false);
  }

  template <typename Change>
  void change(int device, int position, Change apply, int number) {
    if (number < 0) return;
    Schedule changed = schedule_;
    Action& action = changed.devices[device][position];
    apply(action);
    if (action.key.slice > 0) changed.slices[0] = 2;  // so that tokens have slices
    add("renumber", device, position, changed);
  }

  const Schedule& schedule_;
  std::vector<Corruption> spoiled_;
};

}  // namespace penstock::schedule
