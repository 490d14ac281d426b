// SPDX-License-Identifier: Apache-2.0
// The search over hybrid parallelism: every mesh of the cluster with every schedule, slicing, policy and
// offload share. Checks memory first, then time in closed form; simulates the best few (simulated_step.h).
// Exhaustive, without sampling.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/constraints.h"
#include "plan/in_flight.h"
#include "plan/layout_memory.h"
#include "plan/step_cost.h"

namespace penstock::plan {

struct Trainer;

struct Cluster {
  sim::Hardware hardware;
  std::int64_t gpus = 0;
  double limit = 0;  // bytes per device
  sim::Engine engine = sim::kPenstock;
  const Trainer* trainer = nullptr;  // whose constraints hold too (trainer.h); null: Penstock's own
};

// The search space. Empty lists of sizes: all divisors.
struct SearchSpace {
  std::vector<int> tensor, context, expert, pipeline, chunks, slices, micro_batch;
  std::vector<ScheduleKind> schedules = all_schedules();
  std::vector<model::Policy> policies{model::Policy::None, model::Policy::Balanced,
                                      model::Policy::BalancedFc1, model::Policy::Full};
  std::vector<bool> vocabulary_parallel{false, true};
  std::vector<ExchangeMode> exchanges{ExchangeMode::Off, ExchangeMode::Paired, ExchangeMode::Levelled};
  std::optional<double> offload;  // absent: the least share that fits
};

struct Candidate {
  Layout layout;
  StepCost cost;
  FittedMemory memory;
  std::optional<Seconds> simulated;  // the step, if simulated
  model::MemoryTable predicted;      // of its run's devices, once that was laid out; else empty

  Seconds step() const { return simulated.value_or(cost.total()); }
};

// As the trainer predicts it, where the candidate was simulated; else the closed form.
model::MemoryTable memory_of_devices(const Workload& workload, const Candidate& candidate);

struct SearchResult {
  std::int64_t candidates = 0;
  std::array<std::int64_t, kRejections> rejected{};
  std::vector<Candidate> best;              // fastest first
  std::vector<Candidate> without_exchange;  // likewise, among those without
  std::vector<Candidate> pareto;            // ascending memory, each faster than all with less; no exchange
  std::optional<Candidate> nearest_miss;    // the candidate closest to fitting, when nothing fits
  std::string refusal;                      // of all that is legal or fits, where no candidate can be run
  double seconds = 0;

  std::int64_t fitting() const;
  std::int64_t judged() const;  // candidates that break no constraint but perhaps memory
};

// Throws InputError for a cluster without devices, or whose devices do not fill its nodes (a single node may
// be partly filled).
SearchResult search(const Workload& workload, const Cluster& cluster, const SearchSpace& space,
                    std::size_t keep = 10);

void check_cluster(const Cluster& cluster);

// Tokens per second and GPU, and MFU by the convention of model_flops.
double tokens_per_second_per_gpu(const Workload& workload, const Cluster& cluster, Seconds step);
double model_flops_utilization(const Workload& workload, const Cluster& cluster, Seconds step);

}  // namespace penstock::plan
