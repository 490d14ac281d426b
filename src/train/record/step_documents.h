// SPDX-License-Identifier: Apache-2.0
// The documents of a run's last step in the first pipeline, as stored in the run directory.
//
// documents.json: {"step": 12, "fewest": [2048, ...], "most": [...], "micro_batches": [[[120, 800, ...],
// ...], ...]}. "micro_batches" has the document lengths in tokens of each sequence of each micro-batch;
// "fewest" and "most" are as in run::StepContent.
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

// Throws InputError that begins with `origin` if the text has another form, or other numbers of micro-batches
// and sequences or other lengths than the run.
StepDocuments parse_step_documents(std::string_view json, const run::Run& run, std::string_view origin);

}  // namespace penstock::train
