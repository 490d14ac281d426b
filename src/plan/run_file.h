// SPDX-License-Identifier: Apache-2.0
// The run file of a planned layout, for `penstock train`.
#pragma once

#include <optional>
#include <string>

#include "plan/plan_print.h"
#include "run/options.h"
#include "run/run.h"

namespace penstock::plan {

// Options of the run for this layout. Does not set train.device, since runs are rehearsed on CPUs too. Throws
// InputError for models that are not trained (models.h) and sizes that a run file cannot have.
run::Options options_of(const Workload& workload, const Layout& layout);

// That run on the cluster's machines, with the order of a schedule that is made for their speeds; or the
// reason why there is none.
struct LaidOut {
  std::optional<run::Run> run;
  std::string refusal;
};
LaidOut lay_out(const Workload& workload, const Cluster& cluster, const Layout& layout);

// Why the trainer refuses that run before it makes a schedule; empty if it does not.
std::string why_no_run(const Workload& workload, const Layout& layout);

// Throws InputError if the plan is for another trainer or for a model that is not trained. `what` names the
// run file in the message.
void require_run_file(const Workload& workload, const Cluster& cluster, const std::string& what);

// Begins with a comment on the arithmetic of the layout. For a schedule that is made for given speeds it has
// those of the cluster, so that every machine makes the planned order. Throws like require_run_file and
// options_of.
std::string run_file(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                     const std::string& text_file, const std::string& output_dir);

}  // namespace penstock::plan
