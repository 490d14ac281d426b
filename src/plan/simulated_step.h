// SPDX-License-Identifier: Apache-2.0
// The step of a layout by simulation: its schedule generated, lowered and run on the cost model's times, each
// slice with its own length of attention. What lies outside the pipeline (gradient sums, optimizer, copies)
// is added from the closed form.
#pragma once

#include "plan/search.h"
#include "schedule/program.h"
#include "sim/result.h"

namespace penstock::plan {

// Actions of all devices; longer schedules are not worth simulating in a search.
inline constexpr std::int64_t kMostSimulatedActions = 1'000'000;
std::int64_t action_count(const Workload& workload, const Layout& layout);

// The pipeline alone, with the program that was simulated. Context exchange is taken to level the slices
// fully
// ("levelled") or up to 1/n ("paired").
struct SimulatedPipeline {
  schedule::Program program;
  sim::Result result;
};
SimulatedPipeline simulate_pipeline(const Workload& workload, const Cluster& cluster, const Layout& layout);

Seconds simulated_step(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// Simulates the first `count` of the best, as far as they are short enough, and orders them anew.
void simulate_best(const Workload& workload, const Cluster& cluster, std::vector<Candidate>& best,
                   std::size_t count);

}  // namespace penstock::plan
