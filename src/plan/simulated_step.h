// SPDX-License-Identifier: Apache-2.0
// The step of a layout as `penstock simulate` has it of the layout's run file: its schedule lowered with
// exchange, visits of the vocabulary, copies of offloading and sums of gradients, and run action by action.
#pragma once

#include <optional>

#include "plan/search.h"
#include "schedule/program.h"
#include "sim/result.h"

namespace penstock::plan {

// Whether plans are simulated: what is simulated are Penstock's own programs and records, of the models that
// it trains; an engine's file has times of another program, which the closed form alone knows.
bool is_simulated(const Workload& workload, const Cluster& cluster);

// Actions of all devices; longer schedules take too long to simulate in a search.
inline constexpr std::int64_t kMostSimulatedActions = 1'000'000;
std::int64_t action_count(const Workload& workload, const Layout& layout);

// One pipeline; its makespan is the step. Absent for layouts that no run file can express: what the trainer
// refuses (run_file.h).
struct SimulatedStep {
  schedule::Program program;
  sim::Result result;
};
std::optional<SimulatedStep> simulate_step(const Workload& workload, const Cluster& cluster,
                                           const Layout& layout);

// With the memory and the step that the trainer predicts for the candidate's run; memory.fits says whether
// devices and hosts have room for that. With `any_offload` the least share that fits, or all if none does.
// Absent as above.
std::optional<Candidate> as_its_run(const Workload& workload, const Cluster& cluster, Candidate candidate,
                                    bool any_offload);

inline constexpr std::int64_t kMostTriedActions = 2'000'000;  // of all candidates that simulate_best tries

// Simulates those without exchange and the first `count` with it (all, if there are no others) as the closed
// form has them, as far as they are short enough, up to kMostTriedActions in all; then the `count` fastest
// with the memory that the trainer predicts for them, action by action, and while none fits, as many more.
// With `any_offload` each gets the least share that fits so, and those that do not fit leave. The best are
// then the latter by their simulated steps, followed by others without exchange, which the closed form takes
// as perfect, but for those that the trainer refuses; alone they stand only where all that is short enough
// misses. None left: the one that misses by least is the nearest miss, or there is a refusal, as where all
// have exchange and none is short enough.
void simulate_best(const Workload& workload, const Cluster& cluster, SearchResult& result, std::size_t count,
                   bool any_offload);

}  // namespace penstock::plan
