// SPDX-License-Identifier: Apache-2.0
// The run file of a planned layout, for `penstock train`.
#pragma once

#include <string>

#include "plan/plan_print.h"
#include "run/options.h"

namespace penstock::plan {

// Of the run that the layout stands for; what computes is left open, since a run is rehearsed on processors
// too. Throws InputError for models that are not trained (models.h) and sizes that no run file can have.
run::Options options_of(const Workload& workload, const Layout& layout);

// Why the trainer refuses that run before it makes a schedule; empty: it does not.
std::string why_no_run(const Workload& workload, const Layout& layout);

// Throws InputError where another program is planned for, or a model that is not trained; `what` is what its
// message calls the run file.
void require_run_file(const Workload& workload, const Cluster& cluster, const std::string& what);

// Begins with the arithmetic of the layout. Throws as require_run_file and options_of.
std::string run_file(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                     const std::string& text_file, const std::string& output_dir);

}  // namespace penstock::plan
