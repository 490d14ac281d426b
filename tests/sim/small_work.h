// SPDX-License-Identifier: Apache-2.0
// A small step and its costs on the assumed machine.
#pragma once

#include "sim/costs/analytic.h"

namespace penstock::sim {

inline constexpr schedule::OpKind kActions[] = {schedule::OpKind::Forward, schedule::OpKind::Backward,
                                                schedule::OpKind::BackwardInput,
                                                schedule::OpKind::BackwardWeight};

inline schedule::Op op_of(schedule::OpKind kind, int stage = 0, int slice = 0) {
  return {.key = schedule::make_key(stage, 0, slice), .kind = kind};
}

// Two stages of two layers, three sequences of 1,024 tokens in n slices.
inline Work small_work(int n) {
  Work work;
  work.shape.layers = 4;
  work.mesh.pipeline = 2;
  work.layers = model::split_layers(4, 2);
  work.slices = {model::cut_into_slices(1024, n)};
  work.sequences = 3;
  return work;
}

inline AnalyticCosts assumed(const Work& work, const AnalyticOptions& options = {}) {
  return AnalyticCosts(work, assumed_hardware(), kPenstock, options);
}

inline Seconds whole_step(const AnalyticCosts& costs, int n, schedule::OpKind kind) {
  Seconds seconds = 0;
  for (int stage = 0; stage < 2; ++stage) {
    for (int i = 0; i < n; ++i) seconds += costs.seconds(0, 0, op_of(kind, stage, i));
  }
  return seconds;
}

}  // namespace penstock::sim
