// SPDX-License-Identifier: Apache-2.0
// Costs from a run's shape and a machine's speeds: the only analytic model, used by `simulate` without
// measurements and for the planner's best plans.
#pragma once

#include <optional>
#include <vector>

#include "sim/costs/bytes.h"
#include "sim/costs/layer_cost.h"

namespace penstock::sim {

struct AnalyticOptions {
  double attention_factor = 1;      // what-if multiplier of the attention time
  std::optional<double> copy_rate;  // offload copies, bytes/s each way; absent: the hardware's
  Family family = Family::Llama;
  double expert_load = 1;  // rows of the busiest expert rank over the mean
};

// F and B of a stage: the costs of its layers (layer_cost.h) for the slice, with the attention length of this
// slice. W has the weight-gradient products, I the rest of B; B and I include the recomputation. The last
// stage's F has the output layer, forward and backward (the loss is differentiated there), the first stage's
// F the embedding. Under vocabulary parallelism each device's LOSS has its shard of the output layer and the
// transfer of its bytes. STEP has the optimizer of the device's parameters. REDUCE_GRAD and GATHER_WEIGHTS
// run over the ranks with the same weights, for expert weights over those with the same experts; a gradient
// sum with one peer costs one message. Copies, transfers and traffic inside the layers follow the mesh and
// the machine's links. All times but a step's fixed time are stretched by the wait for the slowest node.
class AnalyticCosts final : public Costs {
 public:
  // Peak rate and products are those of the work's precision. Other measured tables are in the hardware's own
  // precision, device.peak. For another precision, byte rates are the same, and so are attention rates, but
  // capped at that precision's peak. Throws InputError if the hardware has no peak rate for the precision, or
  // for an attention_factor that is negative or not finite.
  AnalyticCosts(Work work, const Hardware& hardware, const Engine& engine = kPenstock,
                const AnalyticOptions& options = {});

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override;
  double share_of_attention(const schedule::Exchange& exchange) const override;
  RecordBytes record(const schedule::Key& key) const override { return bytes_.record(key); }
  ActionBytes action(int device, const schedule::Op& op) const override { return bytes_.action(device, op); }
  StageBytes stage(int number) const override { return bytes_.stage(number); }

  // One reduce-scatter or all-gather of `bytes` over a group, for the group with the slowest placement.
  Seconds collective(mesh::Group group, double bytes) const;

  const RunBytes& bytes() const { return bytes_; }

 private:
  // Times of one slice on one stage.
  struct SliceSeconds {
    Seconds forward = 0, backward = 0, input = 0, weights = 0;
    Seconds forward_attention = 0, backward_attention = 0;  // parts of F and B
  };
  LayerSlice layer_slice(int micro_batch, int slice, model::KeepSet keep) const;
  SliceSeconds stage_seconds(int stage, int micro_batch, int slice) const;
  void fill_table();
  // Without the wait for the slowest node.
  Seconds unhindered(int device, const schedule::Op& op) const;
  const SliceSeconds& at(const schedule::Op& op) const;
  double columns() const;  // vocabulary columns on a rank that has any
  Seconds loss(const schedule::Op& op) const;
  Seconds optimizer(int device) const;
  Seconds over(const mesh::ShardingSpread& replicas, schedule::OpKind kind, double bytes) const;
  Seconds over_replicas(const schedule::Op& op) const;
  bool near(int device, int peer) const;  // true if on one node

  RunBytes bytes_;
  Hardware hardware_;
  Engine engine_;
  AnalyticOptions options_;
  double copy_rate_ = 0;
  double stretch_ = 1;                              // factor for the wait for the slowest node
  mesh::ShardingSpread dense_, experts_;            // of the ranks with the same weights
  std::vector<std::vector<SliceSeconds>> seconds_;  // [kind of stage][first_ + slice]
  std::vector<std::size_t> kind_of_stage_;          // one kind for stages with equal layers and ends
  std::vector<std::size_t> first_;  // [micro_batch] offset; micro-batches cut alike share an offset
};

}  // namespace penstock::sim
