// SPDX-License-Identifier: Apache-2.0
// Seconds of one training step, term by term, in closed form (docs/planner.md, "Time"):
//
//   (m·n·v + p − 1)·(F + B of one slice-chunk) + m·(output layer) + exposed waits + gradients + optimizer,
//
// for the slowest device: that of the last stage, or the one with most layers.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "plan/layout.h"

namespace penstock::plan {

struct StepCost {
  sim::LayerTerms work;  // forward and backward
  Seconds recomputation = 0;
  Seconds output_layer = 0;  // output layer, loss and embedding
  Seconds imbalance = 0;     // slices with unequal attention
  Seconds exchange = 0;      // exposed traffic of context exchange
  Seconds bubble = 0;
  Seconds transfers = 0;  // between stages, exposed part
  Seconds copies = 0;     // for offloading, exposed part
  Seconds gradients = 0;  // gradient reductions, weight gathers
  Seconds optimizer = 0;
  Seconds stragglers = 0;  // waits for the slowest node
  Seconds fixed = 0;

  Seconds forward_slot = 0;   // F of a slice-chunk of the slowest device, without its output layer
  Seconds backward_slot = 0;  // B, including recomputation
  double slot_layers = 0;     // the mean of the slowest device's stages

  Seconds total() const {
    return work.total() + recomputation + output_layer + imbalance + exchange + bubble + transfers + copies +
           gradients + optimizer + stragglers + fixed;
  }
  double bubble_fraction() const { return bubble / total(); }
};

// Costs of one slice, shared by layouts with the same t, c, e, micro-batch, slices and policy.
struct SliceCost {
  sim::LayerCost layer;   // a layer to which the layout's `keep` applies
  sim::LayerTerms again;  // recomputation, mean over the layers
  Seconds output = 0;     // output layer and loss, not split over the pipeline
  Seconds embedding = 0;
  Seconds weights = 0;  // W of a layer, of its backward
};
SliceCost slice_cost(const Workload& workload, const Layout& layout, const sim::Hardware& hardware,
                     const sim::Engine& engine);

StepCost step_cost(const Workload& workload, const Layout& layout, const sim::Hardware& hardware,
                   const sim::Engine& engine, const SliceCost& slice);
// Also supports layouts with whole_hidden on engines with sequence parallelism.
StepCost step_cost(const Workload& workload, const Layout& layout, const sim::Hardware& hardware,
                   const sim::Engine& engine);

// The terms by name, for tables; their sum is total().
std::array<std::pair<std::string_view, Seconds>, 18> terms_of(const StepCost& cost);

// Model FLOPs of a step by the convention of model::flops_per_token (a GELU MLP has two matrices).
Flops model_flops(const Workload& workload);

}  // namespace penstock::plan
