// SPDX-License-Identifier: Apache-2.0
// The run file of a planned layout, for `penstock train`.
#pragma once

#include <string>

#include "plan/plan_print.h"

namespace penstock::plan {

// What the run needs that the trainer cannot do yet: data, context, tensor or expert parallelism, experts;
// empty when nothing.
std::string not_trainable_yet(const Workload& workload, const Layout& layout);

// Opens with that, if any, and with its arithmetic.
std::string run_file(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                     const std::string& text_file, const std::string& output_dir);

}  // namespace penstock::plan
