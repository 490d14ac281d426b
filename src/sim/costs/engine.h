// SPDX-License-Identifier: Apache-2.0
// How a training program runs a step: what it overlaps, fuses and keeps, taken from its code and papers.
#pragma once

#include <string>

#include "base/options.h"
#include "model/shape.h"

namespace penstock::sim {

// Llama: RMSNorm, SwiGLU (three matrices), rotary positions, no biases, no dropout.
// Gpt: LayerNorm, GELU (two matrices), learned positions, biases, dropout.
enum class Family : std::uint8_t { Llama, Gpt };

// Passes over memory of one layer's elementwise work, in bytes per token: on the hidden state (divided by t
// only under sequence parallelism) and on tensors that are split over t in any case.
struct ElementwiseBytes {
  double hidden = 0;
  double split = 0;
};

// The contents of an engine file (engines/*.toml, docs/engines.md), and a few settings of Penstock alone that
// have no key. The last members are efficiencies of the program, fitted on published runs of it where there
// are any.
struct Engine {
  std::string name = "penstock";
  std::string attention = "fa2";  // FlashAttention 2, "fa3", "cudnn", "triton"; "plain": scores in memory
  bool dropout = false;           // on attention's scores
  bool sequence_parallel = true;  // else tensor-parallel all-reduces, and norms on every rank
  bool tensor_overlap = true;     // its traffic runs behind the products (userbuffers)
  bool regathers_inputs = true;   // the gathered inputs are gathered again for the weights' gradients
  bool pipeline_overlap = true;   // transfers between stages run behind compute; else they add to every slot
  bool context_by_split = false;  // context parallelism as the slice's split says, not by K and V in a ring
  bool folded_experts = false;    // whole, over t·c·d ranks, on each one's tokens; else cut by t, over c·d
  bool grouped_experts = true;    // one launch for the products of all experts; else one for each expert
  double routing_passes = 0;      // of 2h bytes over the rows of experts, each way: put in order and back
  double reorder_passes = 0;      // ... more over expert ranks: by expert on arrival, by rank to leave
  bool direct_dispatch = false;   // a token goes to a node once, whatever experts it has there (DeepEP)
  bool shards_optimizer = true;  // gradients reduce-scattered and weights gathered over d·c; else all-reduced
  bool gradient_overlap = false;  // wholly behind the backward
  bool gradients_once = true;     // with sharded weights: summed once a step, not once a micro-batch
  double gradient_bytes = 4;      // a number, in the sum over replicas
  double accumulate_bytes = 8;    // traffic of adding a weight gradient to its sum
  double optimizer_bytes = 46;    // traffic of a step per parameter whose states are on the device
  double gradient_passes = 12;    // traffic of zeroing, scaling and norms per local parameter
  bool fused = false;             // SwiGLU in one kernel each way, norms with the residual's sums
  double unfused_passes = 0;      // extra passes of 2h bytes a token and layer, each way: norms in f32 as
                                  // separate operations are 12 each, a rotation in parts 8 on Q and 8 on K
  bool levels_layers = false;     // the last stage has fewer layers, for its output layer
  bool padded_vocabulary = true;  // to a multiple of 128·t, as Megatron-LM does
  bool whole_again = true;        // full recomputation repeats a layer's forward; else what is missing alone
  double elementwise = 1;         // traffic of elementwise work, as a multiple of its counted passes
  double compiled = 1;            // ... once more, where a compiler or library fuses it
  double tensor_exposed = 1;      // share of tensor-parallel traffic that shows
  double gradient_exposed = 1;    // ... of gradient sums, and of gathers of sharded weights
  double expert_exposed = 1;      // time of expert traffic, of what its bytes take
  double pipeline_exposed = 1;    // ... of transfers that wait for each other: times the hardware's
  double pipeline_waits = 0;      // of stages for each other: share of their work
  double layer_ms = 0;            // of the host, for a layer's passes of a micro-batch
  double expert_ms = 0;           // ... of a layer with experts, beyond that
  double step_ms = 0;             // ... for a step

  bool flash_attention() const { return attention != "plain"; }
  double passes_over_rows(bool expert_ranks) const {
    return routing_passes + (expert_ranks ? reorder_passes : 0);
  }
  friend bool operator==(const Engine&, const Engine&) = default;
};

// The table that reads, prints and documents an engine file.
void describe(Engine& engine, OptionTable& table);

// Passes of nn/experts/mixture.cpp: rows are gathered (read, written) and added up (read; with k experts a
// token, its sum is 1/k of a pass forward and, with the router's part, 2/k backward). Over ranks they are
// copied (read, written) into order after the way there and before that back.
inline const Engine kPenstock{.tensor_overlap = false,
                              .context_by_split = true,
                              .folded_experts = true,
                              .grouped_experts = false,
                              .routing_passes = 3.5,
                              .reorder_passes = 4,
                              .fused = true,
                              .levels_layers = true,
                              .padded_vocabulary = false,
                              .whole_again = false};

// Elementwise traffic of a layer's forward and backward, and its kernels.
ElementwiseBytes forward_traffic(const Engine& engine, const model::Shape& shape, Family family);
ElementwiseBytes backward_traffic(const Engine& engine, const model::Shape& shape, Family family);
// Over a tensor of the MLP's width, in the forward: silu reads and writes, the product reads two and writes.
inline double swiglu_passes(const Engine& engine) { return engine.fused ? 3 : 5; }
int forward_kernels(Family family);
int backward_kernels(Family family);

}  // namespace penstock::sim
