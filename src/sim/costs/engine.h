// SPDX-License-Identifier: Apache-2.0
// How a training program runs a step: what it overlaps, fuses and keeps. Facts about programs, taken from
// their code and papers, not fitted.
#pragma once

#include <string_view>

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

struct Engine {
  std::string_view name;
  bool sequence_parallel = true;  // else tensor-parallel all-reduces, and norms on every rank
  bool tensor_overlap = true;     // its traffic runs behind the products (userbuffers)
  bool regathers_inputs = true;   // the gathered inputs are gathered again for the weights' gradients
  bool pipeline_overlap = true;   // transfers between stages run behind compute; else they add to every slot
  bool flash_attention = true;    // else scores are in memory
  bool dropout = false;           // on attention's scores
  bool context_by_split = false;  // context parallelism as the slice's split says, not by K and V in a ring
  bool folded_experts = false;    // whole, over t·c·d ranks, on each one's tokens; else cut by t, over c·d
  bool shards_optimizer = true;  // gradients reduce-scattered and weights gathered over d·c; else all-reduced
  bool gradient_overlap = false;  // behind the backward
  double gradient_bytes = 4;      // a number, in the sum over replicas
  double accumulate_bytes = 8;    // traffic of adding a weight gradient to its sum
  double optimizer_bytes = 46;    // traffic of a step per parameter whose states are on the device
  double gradient_passes = 12;    // traffic of zeroing, scaling and norms per local parameter
  bool fused = false;             // SwiGLU in one kernel each way, norms with the residual's sums
  double unfused_passes = 0;      // extra passes of 2h bytes a token and layer, each way: norms in f32 as
                                  // separate operations are 12 each, a rotation in parts 8 on Q and 8 on K
  bool levels_layers = false;     // the last stage has fewer layers, for its output layer
};

inline constexpr Engine kPenstock{.name = "penstock",
                                  .tensor_overlap = false,
                                  .context_by_split = true,
                                  .folded_experts = true,
                                  .fused = true,
                                  .levels_layers = true};

// The engine of Yuan et al. (ATC'24) and its "baseline"; NVIDIA's Megatron-LM of January 2024 as they ran it.
inline constexpr Engine kKwaiEngine{.name = "kwai", .optimizer_bytes = 34};
inline constexpr Engine kMegatron2024{
    .name = "megatron-2024", .tensor_overlap = false, .optimizer_bytes = 34, .unfused_passes = 40};

// Megatron-LM as Korthikanti et al. (2022) measured it; sequence parallelism as the case says.
inline constexpr Engine kMegatron2022{.name = "megatron-2022",
                                      .tensor_overlap = false,
                                      .pipeline_overlap = false,
                                      .flash_attention = false,
                                      .dropout = true,
                                      .shards_optimizer = false,
                                      .optimizer_bytes = 58};

// Megatron-DeepSpeed as vTrain's authors ran it.
inline constexpr Engine kMegatronDeepSpeed{.name = "megatron-deepspeed",
                                           .sequence_parallel = false,
                                           .tensor_overlap = false,
                                           .pipeline_overlap = false,
                                           .flash_attention = false,
                                           .dropout = true,
                                           .shards_optimizer = false,
                                           .accumulate_bytes = 6,
                                           .optimizer_bytes = 58};

// Elementwise traffic of a layer's forward and backward, and its kernels.
ElementwiseBytes forward_traffic(const Engine& engine, const model::Shape& shape, Family family);
ElementwiseBytes backward_traffic(const Engine& engine, const model::Shape& shape, Family family);
int forward_kernels(Family family);
int backward_kernels(Family family);

}  // namespace penstock::sim
