// SPDX-License-Identifier: Apache-2.0
// Costs in which every action takes the mean time of its kind; all else is unchanged.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "schedule/timeline.h"
#include "sim/costs/forwarded.h"

namespace penstock::sim {

// The minimum and maximum time of the actions of each kind.
class ActionTimes {
 public:
  ActionTimes() { least_.fill(std::numeric_limits<Seconds>::infinity()); }

  void add(schedule::OpKind kind, Seconds took) {
    Seconds& least = least_[static_cast<std::size_t>(kind)];
    Seconds& most = most_[static_cast<std::size_t>(kind)];
    least = std::min(least, took);
    most = std::max(most, took);
  }

  void add(const ActionTimes& others) {
    for (std::size_t kind = 0; kind < least_.size(); ++kind) {
      least_[kind] = std::min(least_[kind], others.least_[kind]);
      most_[kind] = std::max(most_[kind], others.most_[kind]);
    }
  }

  // True if no two actions of a kind differ by more than the rounding of time stamps.
  bool equal() const;

 private:
  std::array<Seconds, 4> least_, most_{};  // [F, B, I, W]
};

class MeanCosts final : public ForwardedCosts {
 public:
  // Takes means over the timeline's actions. `base` is used for everything else and must outlive this.
  MeanCosts(const schedule::Program& program, const schedule::Timeline& timeline, const Costs& base);

  // True if all actions of a kind took the same time: another simulation would change nothing.
  bool all_equal() const { return times_.equal(); }

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;

 private:
  std::array<Seconds, 4> mean_{};  // [F, B, I, W]
  ActionTimes times_;
};

}  // namespace penstock::sim
