// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/collectives.h"

#include <algorithm>

#include "model/memory/visit.h"

namespace penstock::sim {
namespace {

double rate_of(const Hardware& hardware, const mesh::NodeSpread& group, Payload payload) {
  if (group.one_node) return hardware.link_rate();
  const bool gradients = payload == Payload::Gradients;
  const Network& network = hardware.network;
  double efficiency = gradients ? network.gradient_efficiency : network.efficiency;
  if (gradients && group.least_members == 2) efficiency *= network.pair_efficiency;
  return std::min(hardware.link_rate(),
                  group.least_members * hardware.network.gbps_per_gpu * 1e9 * efficiency);
}

Seconds latency_of(const Hardware& hardware, const mesh::NodeSpread& group) {
  const double inside = 1e-6 * hardware.node.link_latency_us * (group.members / group.nodes);
  return group.one_node ? inside : inside + 1e-6 * hardware.network.latency_us * group.nodes;
}

// Linear in the bytes between the measured sizes; beyond the last one with the slope of the last two.
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

Seconds ring_pass(const Hardware& hardware, const mesh::NodeSpread& group, double bytes, Payload payload) {
  if (group.members == 1) return 0;
  const double moved = bytes * (group.members - 1) / group.members;
  return moved / rate_of(hardware, group, payload) + latency_of(hardware, group);
}

Seconds all_to_all(const Hardware& hardware, const mesh::NodeSpread& group, double bytes) {
  if (group.members == 1) return 0;
  const double away = static_cast<double>(group.members - group.least_members) / group.members;
  const double inside = bytes * (group.least_members - 1) / group.members / hardware.link_rate();
  const double outside = group.one_node ? 0.0 : bytes * away / hardware.network_rate();
  return std::max(inside, outside) + latency_of(hardware, group);
}

Seconds message(const Hardware& hardware, bool one_node, double bytes) {
  if (one_node && !hardware.measured.link_kb.empty()) return measured_message(hardware, bytes);
  return one_node ? bytes / hardware.link_rate() + 1e-6 * hardware.node.link_latency_us
                  : bytes / hardware.network_rate() + 1e-6 * hardware.network.latency_us;
}

Seconds stage_transfer(const Hardware& hardware, const mesh::Mesh& mesh, double bytes) {
  if (mesh.pipeline == 1) return 0;
  return message(hardware, mesh.world() <= hardware.node.gpus, bytes);
}

Seconds visit_messages(const Hardware& hardware, const mesh::Mesh& mesh, double own_hidden,
                       model::Precision precision) {
  const Bytes element = model::element_size(precision), accumulator = model::accumulator_size(precision);
  const mesh::NodeSpread stage = mesh::thinnest(mesh, mesh::Group::Tensor, hardware.node.gpus);
  const double rows = own_hidden * mesh.tensor, parts = rows * as_double(accumulator) / as_double(element);
  return stage_transfer(hardware, mesh, model::visit_bytes(own_hidden, element, accumulator)) +
         ring_pass(hardware, stage, rows) + ring_pass(hardware, stage, parts);
}

bool in_one_node(const Hardware& hardware, const mesh::Mesh& mesh, int from, int to) {
  const std::int64_t width = mesh.ranks_per_stage(), node = hardware.node.gpus;
  if (std::abs(from - to) * width >= node) return false;
  for (std::int64_t i = 0; i < width; ++i) {
    if (mesh::node_of(from * width + i, node) != mesh::node_of(to * width + i, node)) return false;
  }
  return true;
}

mesh::NodeSpread strided_expert_group(const mesh::Mesh& mesh, std::int64_t ranks_per_node) {
  const std::int64_t width = std::int64_t{mesh.tensor} * mesh.expert;
  return mesh::thinnest(width, std::max<std::int64_t>(1, mesh.world() / width), mesh.tensor, mesh.expert,
                        ranks_per_node);
}

}  // namespace penstock::sim
