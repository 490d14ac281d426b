// SPDX-License-Identifier: Apache-2.0
// Bytes of a run: records, hidden states, and memory that actions take while they run. No times.
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

// The properties of a run that its costs depend on.
struct Work {
  model::Shape shape;
  mesh::Mesh mesh;
  std::vector<model::LayerRange> layers;               // [stage]
  std::vector<int> devices;                            // [stage]; empty: all different
  std::vector<std::vector<int>> held;                  // [device] its stages; empty: derived from `devices`
  std::vector<std::vector<model::TokenRange>> slices;  // [micro_batch][slice]
  std::vector<model::Documents> documents;             // [micro_batch]; empty: every sequence is one document
  std::int64_t sequences = 1;                          // b, per micro-batch
  model::Precision precision = model::Precision::BF16;
  // [layer of the model]; empty: everything is kept. With several slices each keep set has K,V, the cache.
  std::vector<model::KeepSet> keep;
  bool vocabulary_parallel = false;  // embedding and output layer over t·p ranks
  std::int64_t tensor_shards = 0;    // T, logical tensor-parallel shards; 0: t
  model::ContextSplit context;       // how the mesh's c ranks split attention; its `ranks` is not read
  Tokens loss_tile = model::usual_loss_tile(false);
  std::optional<model::KernelSetting> kernels;  // absent: the memory that actions take is unknown
  int shard_group = 0;                      // replicas that share one set of states; 0: all; 1: each has all
  int expert_shard_group = 0;               // the same for the ranks with the same experts
  std::vector<StageBytes> sharded_weights;  // [stage]; empty: weights and gradients are always there

  int stages() const { return static_cast<int>(layers.size()); }
  bool is_last(int stage) const { return stage + 1 == stages(); }
  model::KeepSet kept_of(std::int64_t layer) const;
};

// Bytes of the first rank of the tensor group, which has the longest blocks. Tensor parallelism splits
// tokens, heads and ffn columns over T logical shards, of which a rank has T/t (model/memory/layer_shards.h).
// Context parallelism divides the tokens by c, and keys and values as ContextSplit says. A record of experts
// is an estimate: it has the rows of experts_per_token experts.
class RunBytes final : public MemoryCosts {
 public:
  explicit RunBytes(Work work);

  RecordBytes record(const schedule::Key& key) const override;
  ActionBytes action(int device, const schedule::Op& op) const override;  // also for LOSS
  StageBytes stage(int number) const override;

  // The bytes of a record that may be offloaded: the tensors that the policy keeps, without the statistics,
  // and without K,V if the micro-batch has several slices, since later slices read them.
  Bytes leavable(const schedule::Key& key) const;

  // Bytes of a slice's hidden states: the size of a transfer.
  Bytes hidden_bytes(int micro_batch, int slice) const;

  const Work& work() const { return work_; }
  model::TensorSplit split() const;
  // The first micro-batch with the same slices and documents as this one.
  int cut_of(int micro_batch) const { return cut_of_[micro_batch]; }

 private:
  model::ContextSplit context() const;
  Tokens rows(int micro_batch, int slice) const;
  model::LayerShards layer(int micro_batch, int slice) const;
  model::ActionSize action_size(const schedule::Key& key) const;
  ActionBytes visit(int device, const schedule::Op& op) const;

  // Cache by kind, stage, cut and slice. Not thread-safe.
  mutable std::map<std::tuple<schedule::OpKind, int, int, int>, ActionBytes> actions_;
  std::vector<int> cut_of_;  // [micro_batch]
  Work work_;
};

}  // namespace penstock::sim
