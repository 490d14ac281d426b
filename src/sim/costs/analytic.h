// SPDX-License-Identifier: Apache-2.0
// Costs from a run's shape and a machine's speeds: the one analytic model, of `simulate` without measurements
// and of the planner's best.
#pragma once

#include <optional>
#include <vector>

#include "sim/costs/bytes.h"
#include "sim/costs/layer_cost.h"

namespace penstock::sim {

struct AnalyticOptions {
  double attention_factor = 1;      // what if attention took so many times as long
  std::optional<double> copy_rate;  // of offloading, bytes/s each way; absent: the host's
  Family family = Family::Llama;
  double expert_load = 1;  // rows of the busiest expert rank over their mean
};

// F and B of a stage: its layers' costs (layer_cost.h) for the slice, with the slice's own length of
// attention. W has the products for the weights' gradients, I the rest of B; B and I begin with what the
// policy did not keep. The last stage's F has the output layer, forward and backward (the loss is formed and
// differentiated there), the first stage's F the embedding; under vocabulary parallelism each device's LOSS
// has its share of the output layer and moves its bytes. STEP has the optimizer of the device's parameters.
// REDUCE_GRAD and GATHER_WEIGHTS go over the ranks with the same weights, the part of the experts over those
// with the same experts; a sum of gradients with one peer takes a message. Copies, transfers and traffic
// inside the layers go by the mesh and the machine's links. All but a step's fixed time is longer by what
// waiting for the slowest node adds.
class AnalyticCosts final : public Costs {
 public:
  // Peak and products are those of the work's precision. Other tables are of the hardware's own, device.peak:
  // in another, bytes go through as quickly, and attention too, but no quicker than products at their peak.
  // Throws InputError when the hardware has no peak rate for the precision, or for a factor that is negative
  // or not finite.
  AnalyticCosts(Work work, const Hardware& hardware, const Engine& engine = kPenstock,
                const AnalyticOptions& options = {});

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override;
  double share_of_attention(const schedule::Exchange& exchange) const override;
  RecordBytes record(const schedule::Key& key) const override { return bytes_.record(key); }
  ActionBytes action(int device, const schedule::Op& op) const override { return bytes_.action(device, op); }
  StageBytes stage(int number) const override { return bytes_.stage(number); }

  // Of one pass over a group, its slowest placed one: a reduce-scatter or an all-gather of `bytes`.
  Seconds collective(mesh::Group group, double bytes) const;

  const RunBytes& bytes() const { return bytes_; }

 private:
  // Of one slice on one stage.
  struct SliceSeconds {
    Seconds forward = 0, backward = 0, input = 0, weights = 0;
    Seconds forward_attention = 0, backward_attention = 0;  // parts of F and B
  };
  LayerSlice layer_slice(int micro_batch, int slice, model::KeepSet keep) const;
  SliceSeconds stage_seconds(int stage, int micro_batch, int slice) const;
  void fill_table();
  // Without waiting for the slowest node.
  Seconds unhindered(int device, const schedule::Op& op) const;
  const SliceSeconds& at(const schedule::Op& op) const;
  double columns() const;  // of the vocabulary on a rank that has any
  Seconds loss(const schedule::Op& op) const;
  Seconds optimizer(int device) const;
  Seconds over(const mesh::SharingSpread& replicas, schedule::OpKind kind, double bytes) const;
  Seconds over_replicas(const schedule::Op& op) const;
  bool near(int device, int peer) const;  // on one node

  RunBytes bytes_;
  Hardware hardware_;
  Engine engine_;
  AnalyticOptions options_;
  double copy_rate_ = 0;
  double stretch_ = 1;                              // by the slowest node
  mesh::SharingSpread dense_, experts_;             // of the ranks with the same weights
  std::vector<std::vector<SliceSeconds>> seconds_;  // [kind of stage][first_ + slice]
  std::vector<std::size_t> kind_of_stage_;          // stages of equal layers and ends are of one kind
  std::vector<std::size_t> first_;  // of each micro-batch; micro-batches cut alike share theirs
};

}  // namespace penstock::sim
