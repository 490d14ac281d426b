// SPDX-License-Identifier: Apache-2.0
// Seconds per step of what ranks do about the states that replicas share: sums of gradients, gathers of
// weights, and the optimizer, of the heaviest device (docs/planner.md, "Time").
#pragma once

#include "plan/layout.h"
#include "plan/layout_memory.h"

namespace penstock::plan {

// A layout and what its step depends on.
struct LayoutCase {
  const Workload& workload;
  const Layout& layout;
  const sim::Hardware& hardware;
  const sim::Engine& engine;

  const model::Shape& shape() const { return workload.model.shape; }
  double t() const { return layout.mesh.tensor; }
  double p() const { return layout.mesh.pipeline; }
  double m() const { return as_double(micro_batches(workload, layout)); }
  double vocab() const { return as_double(output_columns(engine, shape().vocab, layout.mesh.tensor)); }
  model::Shape held() const { return sim::shape_of_ranks(shape(), layout.mesh.tensor); }
  double number_bytes() const { return as_double(model::element_size(workload.precision)); }
};

// The exposed part of sums over replicas, and of gathers of updated weights, given the forward and backward
// of one slice-chunk.
Seconds gradients_of_step(const LayoutCase& c, Seconds forward, Seconds backward);

// ... where weights are sharded as well, and gathered layer by layer. `compute`: of the step.
Seconds shared_weights_of_step(const LayoutCase& c, Seconds compute);

Seconds optimizer_of_step(const LayoutCase& c);

}  // namespace penstock::plan
