// SPDX-License-Identifier: Apache-2.0
// Bytes of a run: records, hidden states, and what actions take while they run. No times.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "mesh/mesh.h"
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
  std::vector<std::vector<model::TokenRange>> slices;  // of each micro-batch
  std::int64_t sequences = 1;                          // b, of a micro-batch
  model::Precision precision = model::Precision::BF16;
  // Of each layer of the model; empty: everything. With slices each holds kv, the cache.
  std::vector<model::KeepSet> keep;
  bool vocabulary_parallel = false;  // embedding and output layer over t·p ranks
  Tokens loss_tile = 512;
  std::optional<model::KernelSetting> kernels;  // none: what actions take while they run is unknown
  int shard_group = 0;              // replicas that share one set of states; 0: all; 1: each has all
  std::vector<StageBytes> passing;  // of each stage; empty: weights and gradients are always there

  int stages() const { return static_cast<int>(layers.size()); }
  bool is_last(int stage) const { return stage + 1 == stages(); }
  model::KeepSet kept_of(std::int64_t layer) const;
};

// Of one rank. Tensor and context parallelism divide records, K,V and hidden states by t·c; a record of
// experts has the rows of experts_per_token of them. Temporaries of actions are those of a model with 1/t of
// the heads, ffn columns and vocabulary on 1/c of the tokens: exact for t = c = 1, an estimate beyond.
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
  // The first micro-batch that is cut like this one.
  int cut_of(int micro_batch) const { return cut_of_[micro_batch]; }

 private:
  Bytes tokens(int micro_batch, int slice) const;  // of all sequences, on all ranks of t·c
  Bytes share(Bytes whole) const;                  // of one of the t·c ranks
  model::Shape shape_of_rank() const;
  model::ActionSize action_size(const schedule::Key& key) const;
  ActionBytes visit(int device, const schedule::Op& op) const;

  // Found once for each kind, stage, cut and slice; not for several threads at a time.
  mutable std::map<std::tuple<schedule::OpKind, int, int, int>, ActionBytes> actions_;
  std::vector<int> cut_of_;  // of each micro-batch
  Work work_;
};

}  // namespace penstock::sim
