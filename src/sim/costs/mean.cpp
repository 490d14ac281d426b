// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/mean.h"

namespace penstock::sim {

using schedule::Op;

bool ActionTimes::equal() const {
  constexpr double kRounding = 1e-9;  // relative rounding of differences of time stamps
  for (std::size_t kind = 0; kind < least_.size(); ++kind) {
    if (most_[kind] - least_[kind] > kRounding * least_[kind]) return false;
  }
  return true;
}

MeanCosts::MeanCosts(const schedule::Program& program, const schedule::Timeline& timeline, const Costs& base)
    : ForwardedCosts(base) {
  std::array<Seconds, 4> sum{};
  std::array<std::size_t, 4> count{};
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    for (std::size_t i = 0; i < program.devices[d].ops.size(); ++i) {
      const Op& op = program.devices[d].ops[i];
      if (!is_action(op.kind)) continue;
      const auto kind = static_cast<std::size_t>(op.kind);
      const Seconds took = timeline.devices[d][i].end - timeline.devices[d][i].start;
      sum[kind] += took;
      ++count[kind];
      times_.add(op.kind, took);
    }
  }
  for (std::size_t kind = 0; kind < mean_.size(); ++kind) {
    if (count[kind] > 0) mean_[kind] = sum[kind] / static_cast<double>(count[kind]);
  }
}

Seconds MeanCosts::seconds(int device, std::uint32_t index, const Op& op) const {
  return is_action(op.kind) ? mean_[static_cast<std::size_t>(op.kind)]
                            : ForwardedCosts::seconds(device, index, op);
}

}  // namespace penstock::sim
