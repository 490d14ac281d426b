// SPDX-License-Identifier: Apache-2.0
// The work of a step by its documents (token_work in run.h), and how evenly it is distributed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "run/run.h"
#include "schedule/exchange/plan.h"

namespace penstock::run {

// Work of a slice of the run's cuts: products and attention. Without documents, every sequence is one.
schedule::SliceWork slice_work(const Run& run, std::span<const model::Documents> documents,
                               const schedule::Key& key);

// Work of one pipeline.
struct StepWork {
  Flops work = 0;
  double pairs = 0, causal_pairs = 0;  // attended, and those without documents
  Flops greatest_micro_batch = 0;
  // Sums over the slots in which all devices run forwards: the slowest device's work after context exchange,
  // and the mean. 0 without such slots.
  Flops slowest_of_slots = 0, mean_of_slots = 0;
};

// `documents`: of the step's micro-batches, which the run's slices cut.
StepWork step_work(const Run& run, std::span<const model::Documents> documents);

}  // namespace penstock::run
