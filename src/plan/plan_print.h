// SPDX-License-Identifier: Apache-2.0
// A plan as people and programs read it.
#pragma once

#include <string>

#include "plan/search.h"

namespace penstock::plan {

// The question and its answer.
struct Plan {
  Workload workload;
  Cluster cluster;
  SearchResult result;
};

// What is asked, in one line: model, sequences, devices, engine.
std::string print_question(const Plan& plan);

// A table of the best, the terms and the memory of the first, the Pareto front, the reasons for rejections.
std::string print_plan(const Plan& plan);
std::string print_plan_json(const Plan& plan);

// One configuration with every term, memory device by device (or of the first and last), and what would have
// to change for it to fit.
std::string explain(const Workload& workload, const Cluster& cluster, const Candidate& candidate,
                    bool ends_only = false);

// When nothing fits: the nearest miss, its largest category, and what would make it fit. One line.
std::string print_nearest_miss(const Plan& plan);

// A layout in one line.
std::string print_layout(const Layout& layout);

// The largest term that is not model arithmetic: what to work on.
std::pair<std::string_view, Seconds> largest_overhead(const StepCost& cost);

// Changes that make a layout fit, the mildest first: a share of offloading, another policy, more devices,
// more memory.
std::string what_would_fit(const Workload& workload, const Cluster& cluster, const Layout& layout);

}  // namespace penstock::plan
