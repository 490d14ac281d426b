// SPDX-License-Identifier: Apache-2.0
// Printing of plans, as text and JSON.
#pragma once

#include <string>

#include "plan/search.h"

namespace penstock::plan {

// The search inputs and the result.
struct Plan {
  Workload workload;
  Cluster cluster;
  SearchResult result;
};

// One line of inputs: model, sequences, devices, engine.
std::string print_question(const Plan& plan);

// A table of the best candidates, terms and memory of the first, the Pareto front, the reasons for rejection.
std::string print_plan(const Plan& plan);
std::string print_plan_json(const Plan& plan);

// One configuration with every term, memory per device (or of the first and last), and the changes that would
// make it fit.
std::string explain(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                    bool ends_only = false);

// When nothing fits: the nearest miss, its largest category, and a change that would make it fit. One line.
std::string print_nearest_miss(const Plan& plan);

// In units of 1e9 bytes, with more decimals for small ones.
std::string gigabytes(double bytes, int decimals);

// A layout in one line.
std::string print_layout(const Layout& layout);

// The largest term other than model arithmetic: the first target for optimisation.
std::pair<std::string_view, Seconds> largest_overhead(const StepCost& cost);

// Changes that make a candidate fit, mildest first: an offload share, another policy, more devices in a mesh
// that is not refused, more memory. Uses the closed form, and assumes that its difference from the memory
// predicted for the run does not change.
std::string what_would_fit(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

}  // namespace penstock::plan
