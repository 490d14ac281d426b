// SPDX-License-Identifier: Apache-2.0
// The run file of a planned layout, for `penstock train`.
#pragma once

#include <string>

#include "plan/plan_print.h"

namespace penstock::plan {

// Features of the run that the trainer does not support yet: data, context, tensor or expert parallelism,
// experts; empty if none.
std::string not_trainable_yet(const Workload& workload, const Layout& layout);

// Begins with these features, if any, and the arithmetic of the layout.
std::string run_file(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                     const std::string& text_file, const std::string& output_dir);

}  // namespace penstock::plan
