// SPDX-License-Identifier: Apache-2.0
// How a training program runs a step: what it overlaps, fuses and keeps, from its code and papers.
#pragma once

#include <string>

#include "base/options.h"
#include "model/shape.h"

namespace penstock::sim {

// Llama: RMSNorm, SwiGLU (three matrices), rotary positions, no biases, no dropout.
// Gpt: LayerNorm, GELU (two matrices), learned positions, biases, dropout.
enum class Family : std::uint8_t { Llama, Gpt };

// Memory traffic of one layer's elementwise work, in bytes per token: on the hidden state (divided by t only
// under sequence parallelism) and on tensors that are always split over t.
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
  bool dropout = false;           // on the attention scores
  bool sequence_parallel = true;  // else tensor-parallel all-reduces, and norms on every rank
  bool tensor_overlap = true;     // tensor-parallel traffic overlaps the products (userbuffers)
  bool regathers_inputs = true;   // gathered inputs are gathered again for the weight gradients
  bool pipeline_overlap = true;   // transfers between stages overlap compute; else they add to every slot
  bool context_by_split = false;  // context parallelism by the slice's ContextSplit; else K and V in a ring
  bool folded_experts = false;    // whole, over t·c·d ranks, on own tokens; else cut by t, over c·d
  bool grouped_experts = true;    // one launch for the products of all experts; else one per expert
  double routing_passes = 0;      // passes of 2h bytes over expert rows, each way: permute and unpermute
  double reorder_passes = 0;      // ... more over expert ranks: by expert on arrival, by rank to leave
  bool direct_dispatch = false;   // a token is sent to a node once for all its experts there (DeepEP)
  bool shards_optimizer = true;   // gradients reduce-scattered, weights gathered over d·c; else all-reduced
  bool gradient_overlap = false;  // gradient traffic fully overlaps the backward
  bool gradients_once = true;     // with sharded weights: summed once per step, not per micro-batch
  double gradient_bytes = 4;      // bytes per number in the sum over replicas
  double accumulate_bytes = 8;    // traffic of adding a weight gradient to its sum
  double optimizer_bytes = 46;    // traffic of a step per parameter whose states are on the device
  double gradient_passes = 12;    // traffic of zeroing, scaling and norms per local parameter
  bool fused = false;             // SwiGLU in one kernel each way, norms fused with residual sums
  double unfused_passes = 0;      // extra passes of 2h bytes per token and layer, each way: f32 norms as
                                  // separate operations are 12 each, an unfused rotation 8 on Q and 8 on K
  bool levels_layers = false;     // the last stage has fewer layers, to make up for the output layer
  bool exact = false;  // matrices, gradients and messages of the vocabulary, and waits for transfers, as
                       // the trainer has them; other engines' constants are fitted with simpler counts
  bool padded_vocabulary = true;  // to a multiple of 128·t, as Megatron-LM does
  bool whole_again = true;        // full recomputation repeats a layer's forward; else only missing tensors
  double elementwise = 1;         // elementwise traffic, as a multiple of its counted passes
  double compiled = 1;            // further factor if a compiler or library fuses it
  double tensor_exposed = 1;      // exposed share of tensor-parallel traffic
  double gradient_exposed = 1;    // ... of gradient sums and of gathers of sharded weights
  double expert_exposed = 1;      // time of expert traffic, relative to that of its bytes
  double pipeline_exposed = 1;    // factor on the hardware's value, for transfers that wait for each other
  double pipeline_waits = 0;      // waits of stages for each other, as a share of their work
  double layer_ms = 0;            // host time per layer and micro-batch, forward and backward
  double expert_ms = 0;           // ... more for a layer with experts
  double step_ms = 0;             // ... per step

  // From here on a compiler or library fuses elementwise work.
  void fuse_elementwise() { elementwise *= compiled; }

  bool flash_attention() const { return attention != "plain"; }
  double passes_over_rows(bool expert_ranks) const {
    return routing_passes + (expert_ranks ? reorder_passes : 0);
  }
  friend bool operator==(const Engine&, const Engine&) = default;
};

// The table that reads, prints and documents an engine file.
void describe(Engine& engine, OptionTable& table);

// Passes of nn/experts/mixture.cpp: rows are gathered (read, written) and summed (read; with k experts per
// token, the sum is 1/k of a pass forward and, with the router's part, 2/k backward). Over ranks they are
// copied (read, written) into order on arrival and before the way back.
inline const Engine kPenstock{.tensor_overlap = false,
                              .context_by_split = true,
                              .folded_experts = true,
                              .grouped_experts = false,
                              .routing_passes = 3.5,
                              .reorder_passes = 4,
                              .fused = true,
                              .levels_layers = true,
                              .exact = true,
                              .padded_vocabulary = false,
                              .whole_again = false};

// Elementwise traffic and numbers of kernels of a layer's forward and backward.
ElementwiseBytes forward_traffic(const Engine& engine, const model::Shape& shape, Family family);
ElementwiseBytes backward_traffic(const Engine& engine, const model::Shape& shape, Family family);
// Forward passes over a tensor of the MLP's width: silu reads and writes, the product reads two and writes.
inline double swiglu_passes(const Engine& engine) { return engine.fused ? 3 : 5; }
// ... of a recomputed product. Where only missing tensors are recomputed, SwiGLU's backward, which reads gate
// and up anyway, writes it.
inline double swiglu_passes_again(const Engine& engine) {
  return engine.whole_again ? swiglu_passes(engine) : 1;
}
int forward_kernels(Family family);
int backward_kernels(Family family);

}  // namespace penstock::sim
