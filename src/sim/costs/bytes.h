// SPDX-License-Identifier: Apache-2.0
// Bytes of a run: records, hidden states, and what actions take while they run. No times.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "mesh/mesh.h"
#include "model/documents.h"
#include "model/memory/action.h"
#include "model/memory/policy.h"
#include "model/memory/visit.h"
#include "model/shape.h"
#include "model/slices.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

// A run as its costs depend on it.
struct Work {
  model::Shape shape;
  mesh::Mesh mesh;
  std::vector<model::LayerRange> layers;               // of each stage
  std::vector<int> devices;                            // of each stage; empty: all on different ones
  std::vector<std::vector<int>> held;                  // stages of each device; empty: as `devices` has them
  std::vector<std::vector<model::TokenRange>> slices;  // of each micro-batch
  std::vector<model::Documents> documents;             // of each; empty: every sequence is one
  std::int64_t sequences = 1;                          // b, of a micro-batch
  model::Precision precision = model::Precision::BF16;
  // Of each layer of the model; empty: everything. With slices each holds kv, the cache.
  std::vector<model::KeepSet> keep;
  bool vocabulary_parallel = false;  // embedding and output layer over t·p ranks
  std::int64_t tensor_shards = 0;    // T, logical shards of the tensor-parallel ranks; 0: t
  model::ContextSplit context;       // how the mesh's c ranks form attention; its `ranks` is not read
  Tokens loss_tile = model::usual_loss_tile(false);
  std::optional<model::KernelSetting> kernels;  // none: what actions take while they run is unknown
  int shard_group = 0;              // replicas that share one set of states; 0: all; 1: each has all
  int expert_shard_group = 0;       // the same of the ranks with the same experts
  std::vector<StageBytes> passing;  // of each stage; empty: weights and gradients are always there

  int stages() const { return static_cast<int>(layers.size()); }
  bool is_last(int stage) const { return stage + 1 == stages(); }
  model::KeepSet kept_of(std::int64_t layer) const;
};

// Of the first rank of the tensor group, whose blocks are longest. Tensor parallelism shares tokens, heads
// and ffn columns out over T logical shards, of which the rank has T/t (model/memory/layer_shards.h); context
// parallelism divides the tokens by c, but keys and values as the way in which attention is formed has it. A
// record of experts is an estimate: it has the rows of experts_per_token of them.
class RunBytes final : public MemoryCosts {
 public:
  explicit RunBytes(Work work);

  RecordBytes record(const schedule::Key& key) const override;
  ActionBytes action(int device, const schedule::Op& op) const override;  // LOSS too
  StageBytes stage(int number) const override;

  // Of a record, all that may leave its device: what the policy keeps, without the statistics, and without
  // K,V where later slices read them.
  Bytes leavable(const schedule::Key& key) const;

  // Of a slice's hidden states, which transfers carry.
  Bytes hidden_bytes(int micro_batch, int slice) const;

  const Work& work() const { return work_; }
  // The first micro-batch that is cut like this one, and has the same documents.
  int cut_of(int micro_batch) const { return cut_of_[micro_batch]; }

 private:
  model::TensorSplit split() const;
  model::ContextSplit context() const;
  Tokens rows(int micro_batch, int slice) const;
  model::LayerShards layer(int micro_batch, int slice) const;
  model::ActionSize action_size(const schedule::Key& key) const;
  ActionBytes visit(int device, const schedule::Op& op) const;

  // Found once for each kind, stage, cut and slice; not for several threads at a time.
  mutable std::map<std::tuple<schedule::OpKind, int, int, int>, ActionBytes> actions_;
  std::vector<int> cut_of_;  // of each micro-batch
  Work work_;
};

}  // namespace penstock::sim
