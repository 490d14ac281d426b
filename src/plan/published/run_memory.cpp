// SPDX-License-Identifier: Apache-2.0
#include "plan/published/run_memory.h"

#include "model/memory/terms.h"
#include "plan/device_memory.h"

namespace penstock::plan {
namespace {

// 2 bytes of weights, 4 of gradients, and 12 of masters and moments, which replicas shard. With sharded
// weights, in 32 bits, all 16 are sharded.
double states_of(const Workload& workload, const Layout& layout, double layers) {
  const double ends = layout.mesh.pipeline > 1 ? 1 : 2;
  const model::LocalParameters held = parameters_on_device(workload, layout, layers, ends);
  const double stepped = stepped_parameters(layout, held);
  return layout.sharded.on ? 16 * stepped : 6 * held.total() + 12 * stepped;
}

// Parameters of a layer whose sharded weights are gathered. A dense layer counts three MLP matrices even with
// GELU: the fitted constants rest on the recomputation that follows for such runs.
double gathered_parameters(const Workload& workload, const Layout& layout) {
  const model::Shape& shape = workload.model.shape;
  if (shape.experts > 1) return parameters_on_device(workload, layout, 1, 0).total();
  return as_double(model::layer_parameters(shape)) / layout.mesh.tensor;
}

}  // namespace

RunMemory run_memory(const Workload& workload, const Layout& layout) {
  const model::Shape& shape = workload.model.shape;
  const double layers = as_double(device_layers(workload, layout, 0)), chunk = layers / layout.chunks;
  const double flight = records_in_flight(layout.schedule, pipeline_shape(workload, layout), 0);
  Layout whole = layout;
  whole.keep = model::keep_of(model::Policy::None);
  const double all = record_size(workload, whole, chunk).total();
  const double kept = record_size(workload, layout, chunk).total();
  const double vocabulary =
      as_double(padded_vocabulary(shape.vocab, layout.mesh.tensor)) / layout.mesh.tensor;

  RunMemory memory;
  memory.states = states_of(workload, layout, layers);
  memory.records = flight * (layout.recomputed * kept + (1 - layout.recomputed) * all);
  memory.working = (all - kept) / chunk;
  if (layout.sharded.on) memory.working += 2 * 2 * gathered_parameters(workload, layout);
  if (layout.mesh.pipeline == 1) memory.logits = 8 * group_tokens(workload, layout) * vocabulary;
  return memory;
}

bool fits(const RunMemory& memory, const sim::Hardware& hardware) {
  return memory.total() <= hardware.device.memory_gb * 1e9;
}

}  // namespace penstock::plan
