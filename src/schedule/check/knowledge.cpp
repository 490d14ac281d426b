// SPDX-License-Identifier: Apache-2.0
#include "schedule/check/knowledge.h"

#include <algorithm>
#include <limits>

namespace penstock::schedule {
namespace {

std::size_t number_of(Lane lane) { return static_cast<std::size_t>(lane); }

}  // namespace

Knowledge::Knowledge(const DeviceProgram& device) : device_(device) {
  constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
  Counts never{};
  never.fill(kNever);
  started_.reserve(device.ops.size());
  place_.reserve(device.ops.size());
  named_.assign(device.ops.size(), never);
  Counts sizes{};
  std::array<Counts, kLanes> last{};  // [lane] started_ of its latest op
  for (const Op& op : device.ops) {
    const std::size_t lane = number_of(lane_of(op.kind));
    Counts counts = last[lane];
    counts[lane] = ++sizes[lane];
    for (const std::uint32_t earlier : device.after_of(op)) {
      std::uint32_t& named = named_[earlier][lane];
      named = std::min(named, counts[lane]);
      for (std::size_t l = 0; l < std::size_t{kLanes}; ++l)
        counts[l] = std::max(counts[l], started_[earlier][l]);
    }
    place_.push_back(sizes[lane] - 1);
    started_.push_back(counts);
    last[lane] = counts;
  }
}

bool Knowledge::is_done(std::uint32_t earlier, std::uint32_t op) const {
  const Counts& started = started_[op];
  for (std::size_t lane = 0; lane < std::size_t{kLanes}; ++lane) {
    if (named_[earlier][lane] <= started[lane]) return true;
  }
  const Lane lane = lane_of(device_.ops[earlier].kind);
  return finishes_in_order(lane) && started[number_of(lane)] > place_[earlier] + 1;
}

}  // namespace penstock::schedule
