// SPDX-License-Identifier: Apache-2.0
// Costs in which every action of a kind takes the mean time of its kind; the rest stays as it is.
#pragma once

#include <array>

#include "schedule/timeline.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

class MeanCosts final : public Costs {
 public:
  // Means over the timeline's actions. `base` answers for everything else and must outlive this.
  MeanCosts(const schedule::Program& program, const schedule::Timeline& timeline, const Costs& base);

  // No action differed from its kind's mean: simulating again would change nothing.
  bool all_equal() const { return all_equal_; }

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(const schedule::Key& key) const override;
  ActionBytes action(int device, const schedule::Op& op) const override;

 private:
  const Costs& base_;
  std::array<Seconds, 4> mean_{};  // [F, B, I, W]
  bool all_equal_ = true;
};

}  // namespace penstock::sim
