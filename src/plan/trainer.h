// SPDX-License-Identifier: Apache-2.0
// Trainers that people run, as far as plans depend on them: what each can do and what it keeps in memory. How
// fast it is says its engine file; trainers/ reads and writes its configurations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan_options.h"

namespace penstock::plan {

struct Trainer {
  std::string_view name;     // cluster.engine
  std::string_view engine;   // the file of engines/ with its speeds
  std::string_view version;  // whose options, schedules and constraints these are
  std::vector<ScheduleKind> schedules;
  std::vector<model::Policy> policies;
  int least_looped_devices = 1;      // fewer cannot have several stages each
  bool shares_weights = false;       // over replicas: gathered for each micro-batch, or kept with a pipeline
  bool needs_replicas = false;       // to train in 16 bits on several devices
  bool pairs_tokens = false;         // each context rank has two pieces of a sequence, cut by tensor ranks
  bool pipelines_head_norms = true;  // models with norms of heads (Qwen3)
  bool cuts_experts = true;          // by tensor ranks; else each is whole on a rank
  bool experts_within_data = false;  // expert ranks are data ranks
};

// Neither slices, offloads, shards the vocabulary over a pipeline nor exchanges context; stages have equally
// many layers, since its own ways of splitting them otherwise differ by version.
const Trainer* find_trainer(std::string_view name);  // null: no trainer of that name

// The search space of the options within what the trainer can do. Throws InputError for a list that asks for
// something else, naming what there is.
SearchSpace space_for(const Trainer& trainer, const PlanOptions& options);

// Throws InputError for what [layout] and memory.offload ask for and the trainer does not have.
void require_within(const Trainer& trainer, const PlanOptions& options);

// The cluster is for that trainer, and its engine forms experts as that does.
void set_trainer(Cluster& cluster, const Trainer& trainer);

// How the engine spreads experts and the optimizer's states over ranks.
void adapt(const sim::Engine& engine, Layout& layout);

// What a layout becomes on the cluster's engine and trainer. What SharedWeights::asked and `group` say stays
// where the engine shares states out.
void adapt(const Cluster& cluster, Layout& layout);

// Why the trainer cannot run it, in one sentence.
std::optional<std::string> refusal_of(const Trainer& trainer, const Workload& workload, const Layout& layout);

}  // namespace penstock::plan
