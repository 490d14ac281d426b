// SPDX-License-Identifier: Apache-2.0
// Costs from a model's shape and a few speeds: a plain analytic model. Matrix products and attention run at
// one rate each, everything else is free.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "model/action_memory.h"
#include "model/shape.h"
#include "model/slices.h"
#include "model/visit_memory.h"
#include "sim/cost_table.h"
#include "sim/costs.h"

namespace penstock::sim {

struct ModelCostsOptions {
  model::Shape shape;
  std::vector<model::LayerRange> layers;               // of each stage
  std::vector<std::vector<model::TokenRange>> slices;  // of each micro-batch
  std::int64_t sequences = 1;                          // b, of a micro-batch
  int vocabulary_shards = 0;  // devices that share the output layer (LOSS); 0: the last stage has it
  model::Precision precision = model::Precision::BF16;
  // Of each layer of the model; empty: everything. With slices each holds kv, the cache.
  std::vector<model::KeepSet> keep;
  double flops_per_second = 1e12;  // of matrix products
  double attention_flops_per_second = 1e12;
  Link link;                            // between any two devices
  double copy_bytes_per_second = 1e10;  // of offloading, each way
  double attention_factor = 1;          // what if attention took so many times as long
  std::vector<int> devices;             // of each stage; empty: all on different ones
  Tokens loss_tile = 512;
  std::optional<model::KernelSetting> kernels;  // none: what actions take while they run is unknown
};

// F and B of a stage: its matrices' products (forward 2 FLOPs a parameter and token, backward 4: 2 each for
// the input and the weights) and causal attention over the slice and all earlier ones (forward 4·H·d FLOPs a
// pair of tokens, backward 10: flash attention forms the scores again). I has the attention and half of the
// products, W the rest. B and I begin with the products and the attention of what the policy did not keep.
// The last stage's F has the output matrix's three products: the loss is formed and differentiated there;
// under vocabulary parallelism each device's LOSS has its share of them, and moves its bytes over the link.
class ModelCosts final : public Costs {
 public:
  // Throws InputError naming a speed that is not positive and finite, or a factor that is negative.
  explicit ModelCosts(const ModelCostsOptions& options);

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(int stage, int micro_batch, int slice) const override;
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override;
  ActionBytes action(int device, const schedule::Op& op) const override;  // LOSS too

  // Of a record, all that may leave its device: what the policy keeps, without the statistics, and without
  // K,V where later slices read them.
  Bytes leavable(int stage, int micro_batch, int slice) const;

  // Of a slice's hidden states, which transfers carry.
  Bytes hidden_bytes(int micro_batch, int slice) const;

 private:
  struct Work {
    Seconds products = 0;   // of one forward
    Seconds attention = 0;  // of one forward
  };
  Work work(int stage, int micro_batch, int slice) const;
  double tokens(int micro_batch, int slice) const;            // of all sequences
  Seconds output_products(int micro_batch, int slice) const;  // the output matrix's three, by one device
  model::KeepSet kept_of(std::int64_t layer) const;
  Bytes saved_per_token(int stage) const;
  Work recomputed(int stage, int micro_batch, int slice) const;
  ActionBytes visit(int device, const schedule::Op& op) const;
  model::ActionSize action_size(int stage, int micro_batch, int slice) const;

  // Found once for each kind, stage, cut and slice; not for several threads at a time.
  mutable std::map<std::tuple<schedule::OpKind, int, int, int>, ActionBytes> actions_;
  std::vector<int> cut_of_;  // of each micro-batch: the first one that is cut alike

  ModelCostsOptions options_;
};

}  // namespace penstock::sim
