// SPDX-License-Identifier: Apache-2.0
// The documents of a run's last step in the first pipeline, as stored in the run directory.
//
// documents.json: {"step": 12, "fewest": [2048, ...], "most": [...], "micro_batches": [[[120, 800, ...],
// ...], ...]}: of each micro-batch and sequence the lengths of its documents in tokens; fewest and most as in
// run::StepContent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "run/step_plan.h"

namespace penstock::train {

struct StepDocuments {
  std::int64_t step = 0;
  run::StepContent content;
};

std::string to_json(const StepDocuments& documents);

// Throws InputError that begins with `origin` for what is no such file, or of other micro-batches and
// sequences than the run's.
StepDocuments parse_step_documents(std::string_view json, const run::Run& run, std::string_view origin);

}  // namespace penstock::train
