// SPDX-License-Identifier: Apache-2.0
// Costs in which every action of a kind takes the mean time of its kind; the rest stays as it is.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "schedule/timeline.h"
#include "sim/costs/forwarded.h"

namespace penstock::sim {

// The range of what the actions of each kind take.
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

  // No action differs from its kind's mean by more than time stamps do.
  bool equal() const;

 private:
  std::array<Seconds, 4> least_, most_{};  // [F, B, I, W]
};

class MeanCosts final : public ForwardedCosts {
 public:
  // Means over the timeline's actions. `base` answers for everything else and must outlive this.
  MeanCosts(const schedule::Program& program, const schedule::Timeline& timeline, const Costs& base);

  // No action differed from its kind's mean: simulating again would change nothing.
  bool all_equal() const { return times_.equal(); }

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;

 private:
  std::array<Seconds, 4> mean_{};  // [F, B, I, W]
  ActionTimes times_;
};

}  // namespace penstock::sim
