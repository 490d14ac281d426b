// SPDX-License-Identifier: Apache-2.0
// The search over hybrid parallelism: every mesh of the cluster with every schedule, slicing, policy and
// share of offloading. Memory first, then time in closed form; the best few are simulated (simulated_step.h).
// Nothing is sampled.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/constraints.h"
#include "plan/layout_memory.h"
#include "plan/step_cost.h"

namespace penstock::plan {

struct Cluster {
  Hardware hardware;
  std::int64_t gpus = 0;
  double limit = 0;  // bytes a device may hold
  Engine engine = kPenstock;
};

// What may be chosen. Empty lists of sizes: all that divide.
struct SearchSpace {
  std::vector<int> tensor, context, expert, pipeline, chunks, slices, micro_batch;
  std::vector<ScheduleKind> schedules{
      ScheduleKind::SlimPipe, ScheduleKind::OneFOneB, ScheduleKind::Seq1F1B, ScheduleKind::Interleaved,
      ScheduleKind::ZbH1,     ScheduleKind::ZbV,      ScheduleKind::VHalf,   ScheduleKind::VMin};
  std::vector<model::Policy> policies{model::Policy::None, model::Policy::Balanced,
                                      model::Policy::BalancedFc1, model::Policy::Full};
  std::vector<bool> vocabulary_parallel{false, true};
  std::vector<Exchange> exchanges{Exchange::Off, Exchange::Paired, Exchange::Levelled};
  std::optional<double> offload;  // absent: the least share that fits
};

struct Candidate {
  Layout layout;
  StepCost cost;
  FittedMemory memory;
  std::optional<Seconds> simulated;  // the step, where it was simulated

  Seconds step() const { return simulated.value_or(cost.total()); }
};

struct SearchResult {
  std::int64_t candidates = 0;
  std::array<std::int64_t, kRejections> rejected{};
  std::vector<Candidate> best;            // quickest first
  std::vector<Candidate> pareto;          // ascending memory, each quicker than all with less
  std::optional<Candidate> nearest_miss;  // the one that came nearest to fitting, when nothing fits
  double seconds = 0;

  std::int64_t fitting() const;
  std::int64_t judged() const;  // whose memory was computed: those that break no other constraint
};

// Throws InputError for a cluster without devices or whose devices do not fill nodes (one node may be
// part-filled).
SearchResult search(const Workload& workload, const Cluster& cluster, const SearchSpace& space,
                    std::size_t keep = 10);

void check_cluster(const Cluster& cluster);

// Tokens a second and GPU, and MFU by the convention of model_flops.
double tokens_per_second_per_gpu(const Workload& workload, const Cluster& cluster, Seconds step);
double model_flops_utilization(const Workload& workload, const Cluster& cluster, Seconds step);

}  // namespace penstock::plan
