// SPDX-License-Identifier: Apache-2.0
// The step of a layout by simulation: its schedule is generated, lowered (including visits of the vocabulary)
// and run with a run's analytic costs, each slice with its own attention length. Gradient sums, optimizer and
// copies are added from the closed form.
#pragma once

#include "plan/search.h"
#include "schedule/program.h"
#include "sim/result.h"

namespace penstock::plan {

// Actions of all devices; longer schedules take too long to simulate in a search.
inline constexpr std::int64_t kMostSimulatedActions = 1'000'000;
std::int64_t action_count(const Workload& workload, const Layout& layout);

// The pipeline alone, with the simulated program. Assumes that context exchange levels the slices fully
// ("levelled") or up to 1/n ("paired").
struct SimulatedPipeline {
  schedule::Program program;
  sim::Result result;
};
SimulatedPipeline simulate_pipeline(const Workload& workload, const Cluster& cluster, const Layout& layout);

Seconds simulated_step(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// Simulates the first `count` of the best, if short enough, and sorts them again.
void simulate_best(const Workload& workload, const Cluster& cluster, std::vector<Candidate>& best,
                   std::size_t count);

}  // namespace penstock::plan
