// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/units.h"
#include "comm/groups.h"
#include "run/step_plan.h"

namespace penstock::train {

// What a step's documents left to do, and how evenly it was shared out (run/step_work.h): the greatest work
// over the mean, 1 at best.
struct DocumentWork {
  Tokens padding = 0;             // tokens of the batch that belong to no document
  double attended = 1;            // pairs of queries and keys, of those without documents
  double micro_batches = 1;       // of all replicas
  double replicas = 1;            // of all their micro-batches together
  Seconds planning_s = 0;         // of the rank that planned the step longest, in the step's time
  std::optional<double> slots{};  // of the devices in a slot, where the schedule has slots; mean over slots
};

// Of one step, which this rank carried out by the plan. Collective.
DocumentWork gather_document_work(const run::Run& plan, const run::StepContent& content, Tokens padding,
                                  Seconds planning, comm::World world);

}  // namespace penstock::train
