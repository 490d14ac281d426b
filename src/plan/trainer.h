// SPDX-License-Identifier: Apache-2.0
// Other trainers, as far as plans depend on them: what each supports and keeps in memory. Its engine file has
// its speed; trainers/ reads and writes its configurations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan_options.h"

namespace penstock::plan {

struct Trainer {
  std::string_view name;     // value of cluster.engine
  std::string_view engine;   // file in engines/ with its speeds
  std::string_view version;  // version with these options, schedules and constraints
  std::vector<ScheduleKind> schedules;
  std::vector<model::Policy> policies;
  int least_looped_devices = 1;      // minimum pipeline ranks for several stages per rank
  bool shards_weights = false;       // over replicas; gathered per micro-batch, or per step with a pipeline
  bool needs_replicas = false;       // to train in 16 bits on several devices
  bool pairs_tokens = false;         // each context rank has two pieces of a sequence, which t must divide
  bool pipelines_head_norms = true;  // supports pipelines for models with per-head norms (Qwen3)
  bool cuts_experts = true;          // tensor ranks split experts; else each is whole on a rank
  bool recomputes_products = false;  // of whole layers one in any number, or every second product; else of
                                     // each stage the first layers
  double reserved = 1;               // memory in its published runs, at most, over what is predicted
  bool compiles = false;             // can fuse elementwise work by a compiler
  bool experts_within_replicas = false;  // expert ranks are data and context ranks, not tensor ranks
  MemoryHabits habits;
};

// Plans for these trainers have no slices, offloading, vocabulary parallelism or context exchange. Stages
// have equal numbers of layers unless Layout::ends is set, since other uneven splits differ by version.
const Trainer* find_trainer(std::string_view name);  // null: no trainer of that name

// The search space of the options, restricted to what the trainer supports. Throws InputError with the
// supported values for a list that asks for anything else.
SearchSpace space_for(const Trainer& trainer, const PlanOptions& options);

// Throws InputError if [layout] or memory.offload asks for something that the trainer does not support.
void require_within(const Trainer& trainer, const PlanOptions& options);

// Sets the cluster's trainer, and makes the engine split experts as that trainer does, and compile
// elementwise work if that is asked for and the trainer can.
void set_trainer(Cluster& cluster, const Trainer& trainer, bool compile);

// Sets how the engine distributes experts and optimizer states over ranks.
void adapt(const sim::Engine& engine, Layout& layout);

// Sets what the cluster's engine and trainer decide. Keeps ShardedWeights::asked, and `group` if the engine
// shards states.
void adapt(const Cluster& cluster, Layout& layout);

// Why the trainer cannot run the layout, in one sentence; absent if it can.
std::optional<std::string> refusal_of(const Trainer& trainer, const Workload& workload, const Layout& layout);

}  // namespace penstock::plan
