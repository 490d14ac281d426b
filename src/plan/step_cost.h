// SPDX-License-Identifier: Apache-2.0
// Seconds of one training step, term by term, in closed form (algorithms: "Time of a step"):
//
//   (m·n·v + p − 1)·(F + B of one slice-chunk) + m·(output layer) + what waits for it + gradient sums +
//   optimizer.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "plan/layer_cost.h"

namespace penstock::plan {

struct StepCost {
  LayerTerms work;  // of the heaviest device: forward and backward
  Seconds recomputation = 0;
  Seconds output_layer = 0;  // output layer, loss and embedding, on the device that has most of them
  Seconds imbalance = 0;     // slices of unequal length of attention
  Seconds exchange = 0;      // traffic that levels them, as far as it shows
  Seconds bubble = 0;
  Seconds transfers = 0;  // between stages, as far as they show
  Seconds copies = 0;     // of offloading, as far as they show
  Seconds gradients = 0;  // sums of gradients, gathers of weights
  Seconds optimizer = 0;
  Seconds fixed = 0;

  Seconds forward_slot = 0;   // F of a slice-chunk
  Seconds backward_slot = 0;  // B, recomputation included

  Seconds total() const {
    return work.total() + recomputation + output_layer + imbalance + exchange + bubble + transfers + copies +
           gradients + optimizer + fixed;
  }
  double bubble_fraction() const { return bubble / total(); }
};

StepCost step_cost(const Workload& workload, const Layout& layout, const Hardware& hardware,
                   const Engine& engine);

// The terms by name, for tables; they add up to total().
std::array<std::pair<std::string_view, Seconds>, 17> terms_of(const StepCost& cost);

// Seconds of the output layer and loss of one slice where `shards` devices share its columns, forward and
// backward; and one hidden state of a slice, in bytes.
Seconds output_layer_slice(const Workload& workload, const Layout& layout, const Hardware& hardware,
                           const Engine& engine, double shards);
double hidden_state_bytes(const Workload& workload, const Layout& layout);

// Model FLOPs of a step by the convention of model::flops_per_token (a GELU MLP has two matrices).
Flops model_flops(const Workload& workload);

// Of offloading: bytes of a record that leave, and the rate of a device's copies while all of its node copy
// both ways.
double copy_rate(const Hardware& hardware);
double disk_rate(const Hardware& hardware);  // the same to and from a disk; 0: not known

}  // namespace penstock::plan
