// SPDX-License-Identifier: Apache-2.0
// The work of a step by its documents (token_work of run.h), and how evenly it is shared out.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "run/run.h"
#include "schedule/exchange/plan.h"

namespace penstock::run {

// What a slice of the run's cuts has of products and attention. Without documents every sequence is one.
schedule::SliceWork slice_work(const Run& run, std::span<const model::Documents> documents,
                               const schedule::Key& key);

// Of one pipeline.
struct StepWork {
  Flops work = 0;
  double pairs = 0, causal_pairs = 0;  // that attend, and that would without documents
  Flops greatest_micro_batch = 0;
  // Over the slots in which all devices run forwards: the sums of the slowest device's work, after context
  // exchange, and of the mean. Zeros without such slots.
  Flops slowest_of_slots = 0, mean_of_slots = 0;
};

// The documents of the step's micro-batches, which the run's slices cut.
StepWork step_work(const Run& run, std::span<const model::Documents> documents);

}  // namespace penstock::run
