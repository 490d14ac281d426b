// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/units.h"
#include "comm/groups.h"
#include "run/step_plan.h"

namespace penstock::train {

// Work of a step with documents and its imbalance (run/step_work.h): largest work over the mean, 1 at best.
struct DocumentWork {
  Tokens padding = 0;             // tokens of the batch that belong to no document
  double attended = 1;            // attended query-key pairs / pairs without documents
  double micro_batches = 1;       // largest / mean micro-batch of all replicas
  double replicas = 1;            // largest / mean replica
  Seconds planning_s = 0;         // of the slowest rank, included in the step's time
  std::optional<double> slots{};  // slowest / mean device over all slots, if any
};

// For one step that this rank has run by `plan`. Collective.
DocumentWork gather_document_work(const run::Run& plan, const run::StepContent& content, Tokens padding,
                                  Seconds planning, comm::World world);

}  // namespace penstock::train
