// SPDX-License-Identifier: Apache-2.0
#include "plan/layout_memory.h"

#include <algorithm>
#include <cmath>

namespace penstock::plan {
namespace {

// Records alive at the peak of weight records. Where a bound on their sum is known (ZB, until W: p, 2p − 1
// and 2p units), the records are the remainder.
double records_beside_weights(ScheduleKind kind, const PipelineShape& shape, int rank) {
  const double records = records_in_flight(kind, shape, rank);
  const double weights = weight_records_in_flight(kind, shape, rank);
  const double all = static_cast<double>(shape.micro_batches) * shape.chunks;
  const double p = shape.devices;
  if (kind == ScheduleKind::ZbH1) return std::min(all, p) - weights;
  if (kind == ScheduleKind::ZbH2) return std::min(all, 2 * p - 1) - weights;
  if (kind == ScheduleKind::ZbV) return std::min(all, 2 * p) - weights;
  return records;
}

// V·h matrices on a device; tied embeddings of a single stage are one matrix.
double embeddings_on(const Workload& workload, const Layout& layout, int rank) {
  const int p = layout.mesh.pipeline;
  if (layout.vocabulary_parallel) return (workload.model.shape.tied_embeddings ? 1.0 : 2.0) / p;
  if (p == 1) return workload.model.shape.tied_embeddings ? 1 : 2;
  const int last = is_v_shaped(layout.schedule) ? 0 : p - 1;
  return (rank == 0 ? 1 : 0) + (rank == last ? 1 : 0);
}

double reduction(const Workload& workload, const Layout& layout, const DeviceLoad& load) {
  return model::offloaded_records(load.records) *
         record_size(workload, layout, load.layers / layout.chunks).leaving;
}

}  // namespace

DeviceLoad device_load(const Workload& workload, const Layout& layout, int rank) {
  const PipelineShape shape = pipeline_shape(workload, layout);
  const int p = shape.devices;
  const int group = model::slice_group(layout.slices, p, layout.chunks);
  const int last = is_v_shaped(layout.schedule) ? 0 : p - 1;
  DeviceLoad load;
  load.layers = static_cast<double>(chunk_layers(workload, layout)) * layout.chunks;
  load.embeddings = embeddings_on(workload, layout, rank);
  load.last = rank == last;
  load.records = records_beside_weights(layout.schedule, shape, rank);
  load.weight_records = weight_records_in_flight(layout.schedule, shape, rank);
  load.kv_gradients = model::kv_gradient_slices(layout.slices, layout.chunks, group);
  if (layout.chunks > 1 && group > p) load.queued = rank == 0 ? group - p : rank == last ? group - p + 3 : 0;
  return load;
}

model::MemoryTable layout_memory(const Workload& workload, const Layout& layout) {
  model::MemoryTable table;
  for (int rank = 0; rank < layout.mesh.pipeline; ++rank) {
    table.push_back(device_memory(workload, layout, device_load(workload, layout, rank)));
  }
  return table;
}

FittedMemory fit_memory(const Workload& workload, const Layout& asked, double limit, bool fixed) {
  Layout layout = asked;
  const int ends[] = {0, layout.mesh.pipeline - 1};
  const DeviceLoad loads[] = {device_load(workload, layout, ends[0]), device_load(workload, layout, ends[1])};
  if (!fixed) {
    layout.offload = 0;
    double share = 0;
    for (const auto& load : loads) {
      const double missing = static_cast<double>(device_memory(workload, layout, load).total()) - limit;
      if (missing > 0) share = std::max(share, missing / std::max(1.0, reduction(workload, layout, load)));
    }
    layout.offload = std::min(1.0, std::ceil(100 * share) / 100);
  }
  FittedMemory fitted;
  fitted.offload = layout.offload;
  for (int end = 0; end < 2; ++end) {
    const model::DeviceMemory memory = device_memory(workload, layout, loads[end]);
    if (end == 0 || memory.total() > fitted.fullest.total()) {
      fitted.fullest = memory;
      fitted.rank = ends[end];
    }
  }
  fitted.fits = static_cast<double>(fitted.fullest.total()) <= limit;
  if (fitted.offload > 0) {
    const double mean = 0.5 * (reduction(workload, layout, loads[0]) +
                               reduction(workload, layout, loads[1]));  // records decrease linearly
    fitted.host_total = static_cast<Bytes>(fitted.offload * mean * layout.mesh.pipeline);
  }
  return fitted;
}

}  // namespace penstock::plan
