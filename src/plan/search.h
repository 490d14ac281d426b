// SPDX-License-Identifier: Apache-2.0
// The search over hybrid parallelism: every mesh of the cluster with every schedule, slicing, policy and
// offload share. Checks memory first, then estimates time in closed form; simulated_step.h simulates the best
// few. Exhaustive, without sampling.
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
  const Trainer* trainer = nullptr;  // adds its constraints (trainer.h); null: Penstock's own trainer
  bool compiled = false;             // the trainer's compiler fuses elementwise work; `engine` has its speed
};

// The search space. For an empty list of sizes, enumerate.h chooses.
struct SearchSpace {
  std::vector<int> tensor, context, expert, pipeline, chunks, slices, micro_batch;
  std::vector<ScheduleKind> schedules = all_schedules();
  std::vector<model::Policy> policies{model::Policy::None, model::Policy::Balanced,
                                      model::Policy::BalancedFc1, model::Policy::Full};
  std::vector<bool> vocabulary_parallel{false, true};
  std::vector<ExchangeMode> exchanges{ExchangeMode::Off, ExchangeMode::Paired, ExchangeMode::Levelled};
  std::optional<double> offload;  // absent: the smallest share that fits
  bool parts = false;             // of another trainer also recomputations of parts of the layers
};

struct Candidate {
  Layout layout;
  StepCost cost;
  FittedMemory memory;
  std::optional<Seconds> simulated;  // step time, if simulated
  double simulated_bubble = 0;       // its idle share, as sim::Result::bubble_fraction
  model::MemoryTable predicted;      // of the devices of its run; empty until the run is laid out

  Seconds step() const { return simulated.value_or(cost.total()); }
  double bubble_fraction() const { return simulated ? simulated_bubble : cost.bubble_fraction(); }
};

// The memory that the trainer predicts if the candidate was simulated, else the closed form.
model::MemoryTable memory_of_devices(const Workload& workload, const Candidate& candidate);

struct SearchResult {
  std::int64_t candidates = 0;
  std::array<std::int64_t, kRejections> rejected{};
  std::vector<Candidate> best;              // fastest first
  std::vector<Candidate> without_exchange;  // likewise, only candidates without exchange
  std::vector<Candidate> pareto;            // ascending memory, descending step; no exchange if avoidable
  std::optional<Candidate> nearest_miss;    // the candidate closest to fitting, when nothing fits
  std::string refusal;                      // why no candidate can run, if legal ones were refused
  double seconds = 0;

  std::int64_t fitting() const;
  std::int64_t judged() const;  // candidates that break no constraint, memory aside
};

// Steps of the same work differ in their last bits.
inline float rounded_step(const Candidate& candidate) { return static_cast<float>(candidate.step()); }

// By the rounded step, then by memory.
bool is_faster(const Candidate& a, const Candidate& b);
inline void keep_faster(const std::optional<Candidate>& candidate, std::optional<Candidate>& best) {
  if (candidate && (!best || is_faster(*candidate, *best))) best = candidate;
}

// Lists of the result have one schedule of those that differ in nothing else where there is no pipeline: the
// one with the least memory. Throws InputError for a cluster without devices, or whose devices do not fill
// its nodes (a single node may be partly filled).
SearchResult search(const Workload& workload, const Cluster& cluster, const SearchSpace& space,
                    std::size_t keep = 10);

void check_cluster(const Cluster& cluster);

// Tokens per second per GPU, and MFU by the convention of model_flops.
double tokens_per_second_per_gpu(const Workload& workload, const Cluster& cluster, Seconds step);
double model_flops_utilization(const Workload& workload, const Cluster& cluster, Seconds step);

}  // namespace penstock::plan
