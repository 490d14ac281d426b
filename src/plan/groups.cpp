// SPDX-License-Identifier: Apache-2.0
#include "plan/groups.h"

#include <algorithm>

namespace penstock::plan {
namespace {

// The thinnest of the placements that start at multiples of `width`, for `starts` groups.
Placement worst_place(std::int64_t width, std::int64_t starts, std::int64_t stride, int members,
                      std::int64_t g) {
  Placement worst = place(0, stride, members, g);
  const std::int64_t different = std::min<std::int64_t>(starts, g);  // starts repeat modulo g
  for (std::int64_t i = 1; i < different && width % g != 0; ++i) {
    const Placement here = place(i * width, stride, members, g);
    const bool thinner =
        worst.one_node ? !here.one_node : !here.one_node && here.least_members < worst.least_members;
    if (thinner) worst = here;
  }
  return worst;
}

}  // namespace

Placement place(std::int64_t first, std::int64_t stride, int members, std::int64_t gpus_per_node) {
  const std::int64_t last = first + stride * (members - 1);
  const std::int64_t first_node = first / gpus_per_node;
  const std::int64_t last_node = last / gpus_per_node;
  Placement group;
  group.members = members;
  group.one_node = first_node == last_node;
  if (group.one_node) {
    group.least_members = members;
    return group;
  }
  if (stride >= gpus_per_node) {
    group.nodes = members;
    return group;
  }
  group.nodes = static_cast<int>(last_node - first_node + 1);
  const std::int64_t in_first = ((first_node + 1) * gpus_per_node - first + stride - 1) / stride;
  const std::int64_t in_last = (last - last_node * gpus_per_node) / stride + 1;
  std::int64_t least = std::min(in_first, in_last);
  if (group.nodes > 2) least = std::min(least, gpus_per_node / stride);
  group.least_members = static_cast<int>(std::max<std::int64_t>(1, least));
  return group;
}

Placement tensor_group(const model::Spread& spread, std::int64_t gpus_per_node) {
  const std::int64_t groups = static_cast<std::int64_t>(spread.context) * spread.data * spread.pipeline;
  return worst_place(spread.tensor, groups, 1, spread.tensor, gpus_per_node);
}

Placement context_group(const model::Spread& spread, std::int64_t gpus_per_node) {
  const std::int64_t width = static_cast<std::int64_t>(spread.tensor) * spread.context;
  const std::int64_t groups = static_cast<std::int64_t>(spread.data) * spread.pipeline;
  return worst_place(width, groups, spread.tensor, spread.context, gpus_per_node);
}

Placement expert_group(const model::Spread& spread, std::int64_t gpus_per_node) {
  const std::int64_t width = static_cast<std::int64_t>(spread.tensor) * spread.expert;
  const std::int64_t ranks =
      static_cast<std::int64_t>(spread.tensor) * spread.context * spread.data * spread.pipeline;
  return worst_place(width, std::max<std::int64_t>(1, ranks / width), spread.tensor, spread.expert,
                     gpus_per_node);
}

Placement gradient_group(const model::Spread& spread, std::int64_t gpus_per_node) {
  const int members = spread.context * spread.data;
  const std::int64_t width = static_cast<std::int64_t>(spread.tensor) * members;
  return worst_place(width, spread.pipeline, spread.tensor, members, gpus_per_node);
}

namespace {

double rate_of(const Hardware& hardware, const Placement& group, bool gradients) {
  if (group.one_node) return hardware.link_rate();
  const Network& network = hardware.network;
  double efficiency = gradients ? network.gradient_efficiency : network.efficiency;
  if (gradients && group.least_members == 2) efficiency *= network.pair_efficiency;
  return std::min(hardware.link_rate(),
                  group.least_members * hardware.network.gbps_per_gpu * 1e9 * efficiency);
}

Seconds latency_of(const Hardware& hardware, const Placement& group) {
  const double inside = 1e-6 * hardware.node.link_latency_us * (group.members / group.nodes);
  return group.one_node ? inside : inside + 1e-6 * hardware.network.latency_us * group.nodes;
}

// Between the measured sizes linear in the bytes; beyond the last at the rate of the last two.
Seconds measured_message(const Hardware& hardware, double bytes) {
  const Numbers& at = hardware.measured.link_kb;
  const Numbers& times = hardware.measured.link_us;
  const double size = bytes / 1e3;
  if (size <= at.front() || at.size() == 1) return 1e-6 * times.front() * std::max(1.0, size / at.front());
  const auto found = std::lower_bound(at.begin(), at.end() - 1, size);
  const auto above = static_cast<std::size_t>(found - at.begin());
  const double slope = (times[above] - times[above - 1]) / (at[above] - at[above - 1]);
  return 1e-6 * (times[above - 1] + slope * (size - at[above - 1]));
}

}  // namespace

Seconds ring_pass(const Hardware& hardware, const Placement& group, double bytes, bool gradients) {
  if (group.members == 1) return 0;
  const double moved = bytes * (group.members - 1) / group.members;
  return moved / rate_of(hardware, group, gradients) + latency_of(hardware, group);
}

Seconds all_to_all(const Hardware& hardware, const Placement& group, double bytes) {
  if (group.members == 1) return 0;
  const double away = static_cast<double>(group.members - group.least_members) / group.members;
  const double inside = bytes * (group.least_members - 1) / group.members / hardware.link_rate();
  const double outside = group.one_node ? 0.0 : bytes * away / hardware.network_rate();
  return std::max(inside, outside) + latency_of(hardware, group);
}

Seconds stage_transfer(const Hardware& hardware, const model::Spread& spread, double bytes) {
  if (spread.pipeline == 1) return 0;
  const std::int64_t width = static_cast<std::int64_t>(spread.tensor) * spread.context * spread.data;
  const bool one_node = width * spread.pipeline <= hardware.node.gpus;
  if (one_node && !hardware.measured.link_kb.empty()) return measured_message(hardware, bytes);
  return one_node ? bytes / hardware.link_rate() + 1e-6 * hardware.node.link_latency_us
                  : bytes / hardware.network_rate() + 1e-6 * hardware.network.latency_us;
}

}  // namespace penstock::plan
