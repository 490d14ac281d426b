// SPDX-License-Identifier: Apache-2.0
// Simulates the step of a layout like `penstock simulate` on the layout's run file: lowers the schedule with
// exchange, vocabulary ops, offload copies and gradient reductions, and runs it action by action.
#pragma once

#include <optional>

#include "plan/search.h"
#include "schedule/program.h"
#include "sim/result.h"

namespace penstock::plan {

// Returns whether plans are simulated: only for Penstock's own engine and the models that it trains. An
// engine file describes the speed of another trainer, which only the closed form models.
bool is_simulated(const Workload& workload, const Cluster& cluster);

// Upper bound on the actions of all devices; longer schedules take too long to simulate in a search.
inline constexpr std::int64_t kMostSimulatedActions = 1'000'000;
std::int64_t action_count(const Workload& workload, const Layout& layout);

// One pipeline; its makespan is the step time. Absent for layouts that no run file can express because the
// trainer refuses them (run_file.h).
struct SimulatedStep {
  schedule::Program program;
  sim::Result result;
};
std::optional<SimulatedStep> simulate_step(const Workload& workload, const Cluster& cluster,
                                           const Layout& layout);

// The candidate with the memory that the trainer predicts for its run, and the simulated step. memory.fits
// says whether both devices and hosts have enough memory. `any_offload`: picks the smallest share that fits,
// or 1 if none does. Absent as above.
std::optional<Candidate> as_its_run(const Workload& workload, const Cluster& cluster, Candidate candidate,
                                    bool any_offload);

// Whether it exists and fits, without the step.
bool fits_as_its_run(const Workload& workload, const Cluster& cluster, Candidate candidate);

// Over all candidates that simulate_best tries, each counted once, with however many groups.
inline constexpr std::int64_t kMostTriedActions = 2'000'000;

// Orders result.best by simulated steps:
// 1. Simulates the candidates without exchange and the first `count` with it (all, if there are no others),
//    with the offload share of the closed form, and gives each the fastest group of slices. Skips long
//    schedules, and those beyond kMostTriedActions in all.
// 2. Predicts the memory of the `count` fastest as the trainer does; while none fits, of the next `count`.
//    `any_offload`: as in as_its_run.
// 3. result.best becomes the candidates that fit, by simulated step, then the other candidates without
//    exchange that the trainer does not refuse, in closed form. Others with exchange are dropped, since its
//    closed form is rough.
// 4. If nothing is left, sets the nearest miss, or a refusal: the trainer's, or that all have exchange and
// are
//    too long to simulate.
void simulate_best(const Workload& workload, const Cluster& cluster, SearchResult& result, std::size_t count,
                   bool any_offload);

}  // namespace penstock::plan
