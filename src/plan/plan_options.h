// SPDX-License-Identifier: Apache-2.0
// The options of a plan file (PLAN.toml), and the search inputs derived from them.
#pragma once

#include <string>

#include "base/options.h"
#include "plan/search.h"

namespace penstock::plan {

struct PlanOptions {
  struct ModelKeys {
    std::string name;  // a known model; otherwise the sizes below
    model::Shape shape{.layers = 0, .hidden = 0, .ffn = 0, .heads = 0, .kv_heads = 0, .vocab = 0};
  } model;
  struct WorkloadKeys {
    std::int64_t seq_len = 0;
    std::int64_t global_batch = 0;  // sequences
    std::string text;               // for the run files
    double expert_load = 1;
  } workload;
  struct ClusterKeys {
    std::string hardware = "h800";
    std::int64_t gpus = 0;
    std::string engine = "penstock";
    bool compile = true;
  } cluster;
  struct MemoryKeys {
    std::string limit;  // empty: device memory minus the reserved part
    NumberOrWord offload{0, "auto"};
  } memory;
  struct SearchKeys {
    Integers tp, cp, ep, pp, chunks, slices, micro_batch;
    Words schedules, policies, vocabulary_parallel, exchanges;
    std::int64_t best = 10;
    std::int64_t simulate = 6;
  } search;
  struct LayoutKeys {
    std::int64_t tp = 1, cp = 1, ep = 1, pp = 1, dp = 0;  // dp 0: the remaining GPUs
    std::int64_t chunks = 1, slices = 1, micro_batch = 1;
    std::int64_t group = 0;
    std::string schedule = "slimpipe";
    std::string policy = "none";
    bool vocabulary_parallel = false;
    std::string exchange = "off";
  } layout;
};

void describe(PlanOptions& options, OptionTable& table);
void describe(PlanOptions::ModelKeys& keys, OptionTable& table);  // the model keys only

std::string options_help();      // for `plan --help`, with the defaults
std::string options_markdown();  // docs/plan_options.md

// Each throws InputError with the key, its value and the valid values.
Workload workload_of(const PlanOptions& options);
Cluster cluster_of(const PlanOptions& options, const sim::Hardware& hardware,
                   const sim::Engine& engine = sim::kPenstock);
SearchSpace space_of(const PlanOptions& options);

// The single configuration of [layout], for --explain, without an offload share. Throws if a constraint
// rejects it.
Layout layout_of(const PlanOptions& options, const Workload& workload, const Cluster& cluster);

}  // namespace penstock::plan
