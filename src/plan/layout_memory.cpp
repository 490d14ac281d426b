// SPDX-License-Identifier: Apache-2.0
#include "plan/layout_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace penstock::plan {
namespace {

double reduction(const Workload& workload, const Layout& layout, const DeviceLoad& load) {
  return model::offloaded_records(load.records) *
         record_size(workload, layout, load.layers / layout.chunks).leaving;
}

}  // namespace

double embeddings_on(const Workload& workload, const Layout& layout, int rank) {
  const int p = layout.mesh.pipeline;
  if (layout.vocabulary_parallel) return (workload.model.shape.tied_embeddings ? 1.0 : 2.0) / p;
  if (p == 1) return workload.model.shape.tied_embeddings ? 1 : 2;
  const int last = last_device(layout);
  return (rank == 0 ? 1 : 0) + (rank == last ? 1 : 0);
}

DeviceLoad device_load(const Workload& workload, const Layout& layout, int rank, Bytes temporary) {
  const PipelineShape shape = pipeline_shape(workload, layout);
  const int p = shape.devices;
  const int turn = slices_of_turn(layout.schedule, shape), group = std::min(layout.slices, turn);
  const int last = last_device(layout);
  DeviceLoad load;
  load.layers = static_cast<double>(device_layers(workload, layout, rank));
  load.embeddings = embeddings_on(workload, layout, rank);
  if (workload.model.shape.tied_embeddings && workload.habits.two_tied_gradients &&
      (p == 1 || layout.vocabulary_parallel))
    load.tied_gradients = 1.0 / p;
  load.last = rank == last;
  const HeldRecords held = held_at_peak(layout.schedule, shape, rank);
  load.records = held.records;
  load.weight_records = held.weight_records;
  // The last slice's K,V gradient needs no accumulator: no other slice adds to it.
  load.kv_gradients = std::max(0.0, model::kv_gradient_slices(layout.slices, layout.chunks, group) - 1);
  load.temporary = temporary;
  if (layout.chunks > 1 && turn > p) load.queued = rank == 0 ? turn - p : rank == last ? turn - p + 3 : 0;
  return load;
}

model::MemoryTable layout_memory(const Workload& workload, const Layout& layout) {
  const Bytes temporary = temporary_bytes(workload, layout);
  model::MemoryTable table;
  for (int rank = 0; rank < layout.mesh.pipeline; ++rank) {
    table.push_back(device_memory(workload, layout, device_load(workload, layout, rank, temporary)));
  }
  return table;
}

namespace {

struct LoadOfRank {
  int rank = 0;
  DeviceLoad load;
};

std::vector<LoadOfRank> checked_loads(const Workload& workload, const Layout& layout,
                                      std::optional<Bytes> temporary) {
  const Bytes bytes = temporary ? *temporary : temporary_bytes(workload, layout);
  const int last = layout.mesh.pipeline - 1, fullest = fullest_rank(workload, layout);
  std::vector<LoadOfRank> loads;
  for (int rank = 0; rank <= last; ++rank) {
    const bool weights = rank + 1 == last && splits_backward(layout.schedule);
    if (layout.ends || rank == 0 || rank == fullest || weights || rank == last)
      loads.push_back({rank, device_load(workload, layout, rank, bytes)});
  }
  return loads;
}

FittedMemory memory_of(const Workload& workload, const Layout& layout, double limit,
                       const std::vector<LoadOfRank>& loads) {
  FittedMemory fitted;
  fitted.offload = layout.offload;
  for (const auto& [rank, load] : loads) {
    const model::MemoryPeaks memory = device_memory(workload, layout, load);
    fitted.host = std::max(fitted.host, memory.host);
    if (rank == 0 || memory.total() > fitted.fullest.total()) {
      fitted.fullest = memory;
      fitted.rank = rank;
    }
  }
  fitted.fits = static_cast<double>(fitted.fullest.total()) <= limit;
  return fitted;
}

}  // namespace

FittedMemory fit_memory(const Workload& workload, const Layout& layout, double limit,
                        std::optional<Bytes> temporary) {
  return memory_of(workload, layout, limit, checked_loads(workload, layout, temporary));
}

FittedMemory fit_with_least_offload(const Workload& workload, Layout layout, double limit,
                                    std::optional<Bytes> temporary) {
  const std::vector<LoadOfRank> loads = checked_loads(workload, layout, temporary);
  layout.offload = 0;
  double share = 0;
  for (const auto& [rank, load] : loads) {
    const double missing = static_cast<double>(device_memory(workload, layout, load).total()) - limit;
    if (missing > 0) share = std::max(share, missing / std::max(1.0, reduction(workload, layout, load)));
  }
  layout.offload = std::min(1.0, std::ceil(100 * share) / 100);
  return memory_of(workload, layout, limit, loads);
}

}  // namespace penstock::plan
