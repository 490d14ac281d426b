// SPDX-License-Identifier: Apache-2.0
#include "plan/host_memory.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/whole.h"

namespace penstock::plan {
namespace {

// On a CPU, host and device share the same memory.
bool is_cpu(const Cluster& cluster) { return cluster.hardware.device.backend == "cpu"; }

std::int64_t ranks_of_a_node(const Cluster& cluster) {
  return std::min(cluster.gpus, cluster.hardware.node.gpus);
}

model::MemoryTable devices_at_ends(const Workload& workload, const Cluster& cluster,
                                   const Candidate& candidate) {
  const Layout& layout = candidate.layout;
  const std::int64_t p = layout.mesh.pipeline;
  const std::int64_t node =
      layout.ends ? p : ceil_div(ranks_of_a_node(cluster), layout.mesh.ranks_per_stage());
  const Bytes temporary = temporary_bytes(workload, layout);
  model::MemoryTable table;
  for (int rank = 0; rank < p; ++rank) {
    if (rank >= node && rank < p - node) continue;
    const DeviceLoad load = device_load(workload, layout, rank, temporary);
    table.push_back(device_memory(workload, layout, load));
  }
  return table;
}

double of_fullest_ranks(const model::MemoryTable& devices, std::int64_t ranks_per_stage, std::int64_t ranks,
                        bool tensors) {
  std::vector<Bytes> bytes;
  for (const model::MemoryPeaks& memory : devices)
    bytes.push_back(memory.host + (tensors ? memory.total() : 0));
  std::ranges::sort(bytes, std::greater());
  double sum = 0;
  for (const Bytes one : bytes) {
    const std::int64_t here = std::min(ranks, ranks_per_stage);
    sum += as_double(here) * as_double(one);
    ranks -= here;
  }
  return sum;
}

}  // namespace

double bytes_on_a_host(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  const bool tensors = is_cpu(cluster);
  if (candidate.layout.offload <= 0 && !tensors) return 0;
  return of_fullest_ranks(
      candidate.predicted.empty() ? devices_at_ends(workload, cluster, candidate) : candidate.predicted,
      candidate.layout.mesh.ranks_per_stage(), ranks_of_a_node(cluster), tensors);
}

double bytes_of_a_host(const Cluster& cluster) {
  const sim::Device& device = cluster.hardware.device;
  const sim::Node& node = cluster.hardware.node;
  if (!is_cpu(cluster)) return node.host_memory_gb * 1e9;
  const double ranks = as_double(node.gpus);
  return (std::max(node.host_memory_gb, ranks * device.memory_gb) - ranks * device.reserved_gb) * 1e9;
}

bool host_holds(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  return bytes_on_a_host(workload, cluster, candidate) <= bytes_of_a_host(cluster);
}

double share_of_memory(const Workload& workload, const Cluster& cluster, const Candidate& candidate) {
  const double of_device = as_double(candidate.memory.fullest.total()) / cluster.limit;
  if (of_device > 1) return of_device;
  return bytes_on_a_host(workload, cluster, candidate) / bytes_of_a_host(cluster);
}

void keep_nearer(const Workload& workload, const Cluster& cluster, const Candidate& miss,
                 std::optional<Candidate>& nearest) {
  const auto share = [&](const Candidate& one) { return share_of_memory(workload, cluster, one); };
  if (nearest && share(miss) >= share(*nearest)) return;
  nearest = miss;
  nearest->memory.fits = false;  // its host's may be what lacks
}

}  // namespace penstock::plan
