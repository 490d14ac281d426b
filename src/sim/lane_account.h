// SPDX-License-Identifier: Apache-2.0
// Accounts for the compute lane of one device, op by op in list order, from a timeline or during simulation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "schedule/timeline.h"
#include "sim/idle.h"

namespace penstock::sim {

class LaneAccount {
 public:
  // The list must outlive this.
  explicit LaneAccount(const schedule::DeviceProgram& list) : list_(&list) {
    auto i = static_cast<std::uint32_t>(list.ops.size());
    while (i > 0 && !is_action(list.ops[i - 1].kind)) --i;
    actions_end_ = i;
  }

  // Adds the next compute op and its times. `waited(i)`: the times of op i, which the op waits for; for a
  // receive, from the start of the matching send to the arrival of the message.
  template <class Waited>
  void add(std::uint32_t index, const schedule::Event& event, const Waited& waited) {
    const schedule::Op& op = list_->ops[index];
    time_.busy += event.end - event.start;
    if (event.start > reached_) {
      const bool ramp = !acted_ || index >= actions_end_;
      ramp ? void(time_.idle.ramp += event.start - reached_) : explain(op, reached_, event.start, waited);
    }
    if (is_action(op.kind)) {
      if (!acted_) time_.first_start = event.start;
      time_.last_end = event.end;
      acted_ = true;
    }
    reached_ = std::max(reached_, event.end);
  }

  // Call after the last op.
  DeviceTime finish(Seconds makespan) const {
    DeviceTime time = time_;
    time.idle.ramp += makespan - reached_;
    return time;
  }

 private:
  // Splits the gap [begin, end) before an op: first producers are not done, then bytes are in flight, then a
  // copy is not done.
  template <class Waited>
  void explain(const schedule::Op& op, Seconds begin, Seconds end, const Waited& waited) {
    Seconds produced = begin;
    Seconds arrived = begin;
    Seconds copied = begin;
    for (const std::uint32_t wait : list_->after_of(op)) {
      const schedule::OpKind kind = list_->ops[wait].kind;
      if (is_receive(kind)) {
        const schedule::Event message = waited(wait);
        produced = std::max(produced, message.start);
        arrived = std::max(arrived, message.end);
      } else if (kind == schedule::OpKind::Reload || kind == schedule::OpKind::Offload) {
        copied = std::max(copied, waited(wait).end);
      }
    }
    produced = std::min(produced, end);
    arrived = std::clamp(arrived, produced, end);
    copied = std::clamp(copied, arrived, end);
    time_.idle.transfer += arrived - produced;
    time_.idle.copy += copied - arrived;
    time_.idle.dependency += (produced - begin) + (end - copied);
  }

  const schedule::DeviceProgram* list_;
  std::uint32_t actions_end_ = 0;  // index after the last action
  bool acted_ = false;             // an action was added
  Seconds reached_ = 0;            // latest end of the added ops
  DeviceTime time_;
};

}  // namespace penstock::sim
