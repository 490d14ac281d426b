// SPDX-License-Identifier: Apache-2.0
// A fully resolved run: every "auto" chosen, every text parsed once, slices cut, schedule generated and
// lowered, memory predicted. resolve() creates it (run/resolve/resolve.h); trainer, simulator, planner's run
// files, reports and tests read it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/shard.h"
#include "model/documents.h"
#include "model/memory/policy.h"
#include "model/memory/table.h"
#include "model/slices.h"
#include "run/machine.h"
#include "run/options.h"
#include "schedule/exchange/plan.h"
#include "schedule/passes/shard.h"
#include "schedule/program.h"
#include "schedule/schedule.h"

namespace penstock::run {

enum class OffloadTo : std::uint8_t { Host, Disk };

// Topics of resolve()'s notes, in the order in which they are printed.
enum class Topic : std::uint8_t {
  Schedule,  // the choice of slices and chunks, the origin of greedy's order
  Layers,    // why stages have unequal layers by default
  Context,   // the choice for parallel.cp_mode = "auto", a raised slice unit
  Exchange,  // the choice for schedule.exchange = "auto"
  Gathers,   // gathers of weights that breadth-first would save
  Memory,    // the choices for "auto" in [memory]
};
std::string_view name_of(Topic topic);  // "schedule", "layers", ...

// Begin and length of each slice of each micro-batch.
using Cuts = std::vector<std::vector<model::TokenRange>>;

struct Run {
  Options options;  // every option given; printed and read back, it resolves to the same run

  model::Precision precision = model::Precision::BF16;
  mesh::Mesh mesh;
  schedule::ReplicaSharding replica_sharding = schedule::ReplicaSharding::None;
  Machine machine;
  int threads = 1;  // per rank
  model::KernelSetting kernels;

  schedule::Schedule schedule;            // legal, for the devices of one pipeline
  std::vector<model::LayerRange> layers;  // per stage
  std::vector<int> device_of_stage;       // pipeline rank of each stage; its first device if replicated
  Cuts slices;                            // of one step
  // One per micro-batch of the step that this run is planned for; empty: every sequence is one document.
  std::vector<model::Documents> documents;

  std::vector<model::KeepSet> keep;  // per layer: tensors kept for the backward
  double offload = 0;                // share of each record that is offloaded
  OffloadTo offload_to = OffloadTo::Host;
  std::optional<Bytes> memory_limit;  // of a device
  schedule::ExchangeMode exchange = schedule::ExchangeMode::Off;

  schedule::Program program;     // one step of one pipeline
  model::MemoryTable predicted;  // peak of each device of the pipeline

  std::map<Topic, std::string> notes;  // no empty texts

  std::string note(Topic topic) const;                  // empty if there is none
  void add_note(Topic topic, const std::string& text);  // appends; no-op for an empty text

  const model::Shape& shape() const { return options.model.shape; }
  int stages() const { return static_cast<int>(layers.size()); }
  int devices() const { return schedule.device_count(); }  // of a pipeline
  std::int64_t sequences() const { return options.train.micro_batch; }
  bool shards_weights() const { return replica_sharding == schedule::ReplicaSharding::Weights; }
  bool sharded_vocabulary() const { return options.schedule.vocabulary_parallel; }
  bool is_sliced() const { return schedule::is_sliced(schedule); }

  // Tensor parallelism (run/tensor.h): T logical shards of each layer, of which a rank has T/t.
  int tensor_shards() const { return static_cast<int>(options.numerics.tensor); }
  int shards_of_rank() const { return tensor_shards() / mesh.tensor; }
  // The mesh with the logical shards as its tensor ranks.
  mesh::Mesh logical_mesh() const;

  // The sharding of the parameters, over the logical mesh.
  mesh::Sharding sharding() const {
    return {logical_mesh(), shape().heads, shape().kv_heads, shape().experts, sharded_vocabulary()};
  }
};

// Measure for splitting work: model FLOPs, those of attention times schedule.attention_cost. Independent of
// the machine, so that the bits are too.
model::TokenWork token_work(const Options& options);

// The slices of one micro-batch, or of all, from their numbers of slices.
std::vector<model::TokenRange> cut(const Options& options, int slices);
Cuts cuts_of(const Options& options, const std::vector<int>& slices);

// The run's schedule as errors name it: schedule.name = "slimpipe" or schedule.file = "my.csv".
std::string name_of_schedule(const Options& options);

}  // namespace penstock::run
