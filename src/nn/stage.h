// SPDX-License-Identifier: Apache-2.0
// A stage: consecutive decoder layers, preceded by the embedding on the first stage and followed by the final
// norm, the output matrix and the loss on the last. Explicit backward throughout; no autograd.
//
// N = b·T tokens of one slice of a micro-batch, T of each of its b sequences; slices may differ in length. In
// a tensor group (tensor_group.h) each rank has the parameters of its shards and n of the N rows between
// layers; all its ranks make the same calls, each with its own rows. In a context group (context_group.h)
// each rank has its own tokens of every slice, and N counts only those. Without groups a rank has everything.
// The tensors saved for one (micro-batch, slice) form one record, which the stage owns from forward until
// backward (or until backward_weight, as a weight record). A policy may keep fewer tensors: the backward
// recomputes the rest, with the same bits. The keys and values of a slice are part of its record and are read
// by the later slices of the micro-batch. docs/slimpipe.md, "How it works", gives the legal order of calls;
// other orders break invariants. One thread at a time.
//
// Arguments may be kept without a copy (hidden until the record is consumed, grad_output until
// backward_weight, tokens until the backward): the caller must not write to them afterwards. backward_input
// computes norm and embedding gradients, forward the output layer's, backward_weight all others.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <vector>

#include "base/units.h"
#include "model/memory/policy.h"
#include "model/shape.h"
#include "nn/attention_partners.h"
#include "nn/experts/router_balance.h"
#include "nn/groups/context_group.h"
#include "nn/groups/slice_place.h"
#include "nn/groups/tensor_group.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/kernels/rope.h"
#include "nn/parameters/parameter.h"

namespace penstock::nn {

// For layers with experts.
struct ExpertOptions {
  mesh::Shard own;                     // this rank's experts; count 0: all
  mesh::StateSharding sharding;        // of their states, among the ranks with the same experts
  const ExpertGroup* group = nullptr;  // must outlive the stage; null: this rank alone
  RouterLossOptions losses;
  ForcedChoice forced;
};

// Counted as weights. `positions`: the sequence length.
kernels::RotaryTable rotary_table(const model::Shape& shape, std::int64_t positions,
                                  model::Precision precision);

struct StageOptions {
  model::Shape shape;
  model::LayerRange layers;
  bool first = true;  // has the embedding
  bool last = true;   // has the output layer and the loss
  model::Precision precision = model::Precision::F32;
  std::uint64_t seed = 1;  // initial weights depend only on the seed and the parameter's name
  std::int64_t loss_tile_tokens = model::usual_loss_tile(false);
  kernels::RotaryTable rotary;  // the stages of a rank share one; without layers none is needed
  // Tensors that each layer keeps for the backward; empty: all. With slices every layer keeps kv, which later
  // slices read.
  std::vector<model::KeepSet> keep;
  StateLayout states;
  ExpertOptions experts;
  TensorGroup* group = nullptr;           // must outlive the stage; null: this rank alone
  const ContextGroup* context = nullptr;  // the same
};

// The part of the step's tokens that a call works on.
struct SliceKey {
  int micro_batch = 0;
  int slice = 0;
  friend auto operator<=>(const SliceKey&, const SliceKey&) = default;
};

struct ForwardInput {
  SliceKey key;
  SlicePlace place;
  bool last_slice = false;                // no later slice reads its keys and values: evaluation drops them
  std::vector<at::Tensor> tokens;         // [b, T] int64 in parts along T, first stage; all tokens of the
                                          // tensor group; the stage keeps these views until its backward
  at::Tensor hidden;                      // [n, h] in the compute type, other stages
  std::vector<at::Tensor> targets;        // likewise, last stage; -1: no target
  double loss_scale = 1.0;                // last stage: 1 / number of targets of the whole step
  AttentionPartners* partners = nullptr;  // devices that compute part of this slice's attention; may be null
};

struct ForwardOutput {
  at::Tensor hidden;  // [n, h]; undefined on the last stage
  // Last stage: sum of -log p(target) over the targets, unscaled; 0 on all ranks but one.
  kernels::LossSum loss_sum;
};

class Stage {
 public:
  explicit Stage(const StageOptions& options);
  ~Stage();
  Stage(Stage&&) noexcept;

  // Shard after shard, each in the model's order; stable addresses.
  std::vector<Parameter>& parameters();

  ForwardOutput forward(const ForwardInput& input);

  // Maps the gradient of the stage's output [n, h] (undefined on the last stage, which computed it in
  // forward) to the gradient of its input (undefined on the first stage, which accumulates the embedding's
  // gradient). The record becomes a weight record. Partners as in forward.
  at::Tensor backward_input(SliceKey key, const at::Tensor& grad_output,
                            AttentionPartners* partners = nullptr);

  // Adds the weight gradients of the key's weight record and frees it.
  void backward_weight(SliceKey key);

  // Does both, layer by layer; the same bits.
  at::Tensor backward(SliceKey key, const at::Tensor& grad_output, AttentionPartners* partners = nullptr);

  // Forward without backward: keeps keys and values only, until forget(). Computes no gradients.
  ForwardOutput evaluate(const ForwardInput& input);

  // Like evaluate() on the last stage, but returns the logits [b, T, V] in f32 (f64 for f64) instead of the
  // loss. For sampling; needs a single shard.
  at::Tensor evaluate_logits(const ForwardInput& input);

  void forget(int micro_batch);  // drops the tensors that evaluate kept

  void zero_gradients();

  // Call after the optimizer: updates the weights from the masters (weight_from_master).
  void weights_from_masters();

  // Memory of a live record that can be offloaded until its backward, in a fixed order (record.h). `sliced`:
  // other slices of its micro-batch read its keys and values.
  std::vector<c10::Storage> leavable(SliceKey key, bool sliced) const;

  // Facts of the routers since the last call; call at the end of a step.
  RouterFacts take_router_facts();

  // Saved bytes of live records, each storage counted once: activations (until backward), weight records, f32
  // gradients of keys and values, and the kept gradient of the loss (category logits).
  struct SavedBytes {
    Bytes activations = 0;
    Bytes weight_records = 0;
    Bytes kv_gradients = 0;
    Bytes logits = 0;
  };
  SavedBytes saved_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nn
