// SPDX-License-Identifier: Apache-2.0
// What a trainer's configuration says that a plan file has no key for.
#pragma once

#include <optional>
#include <string_view>

#include "plan/question.h"

namespace penstock::plan {

enum class Recomputed : std::uint8_t {
  AsPolicy,       // what layout.policy says
  Scores,         // attention alone
  FirstOfStage,   // whole layers, so many of each stage
  EverySo,        // whole layers, every so manieth
  EverySecondOp,  // of a layer every second product of its matrices, and what is no product
};

struct Beyond {
  std::string_view model;         // its name; empty: unknown
  bool compiled = false;          // elementwise work is fused by a compiler
  bool looped_experts = false;    // their products one after another
  bool whole_hidden = false;      // tensor ranks hold whole hidden states
  bool whole_states = false;      // each replica has all states of the optimizer
  std::int64_t copies = 1;        // of the weights that replicas share out
  std::optional<bool> regathers;  // the shared weights for the backward; absent: as the trainer does
  Recomputed recomputed = Recomputed::AsPolicy;
  std::int64_t every = 1;  // of EverySo; of FirstOfStage how many
  std::optional<EndWeights> ends;
  Words not_counted;  // what the configuration has and the prediction has not, each by its name
};

// To the question before a layout is made of it, and to that layout before adapt().
void apply(const Beyond& beyond, Question& question);
void apply(const Beyond& beyond, const Workload& workload, Layout& layout);

// Of the layers of the device that has most, the share that is recomputed whole; each device counts its own.
void recompute_every(std::int64_t every, const Workload& workload, Layout& layout);

// Of each stage so many layers, or all: Megatron-LM's --recompute-method block.
void recompute_first(std::int64_t layers, const Workload& workload, Layout& layout);

// torchtitan's selective recomputation by operation: the outputs of wq, wv, w1 and w2 and of attention stay,
// those of wk, wo and w3 and everything else are formed again. Halves of the layers stand for halves of these
// tensors; of experts none stays. 3 % less than the bytes of a Llama 3 8B.
void recompute_every_second_product(const Workload& workload, Layout& layout);
bool recomputes_every_second_product(const Workload& workload, const Layout& layout);

}  // namespace penstock::plan
