// SPDX-License-Identifier: Apache-2.0
// Settings in a trainer's configuration for which plan files have no key.
#pragma once

#include <optional>
#include <string_view>

#include "plan/question.h"

namespace penstock::plan {

enum class Recomputed : std::uint8_t {
  AsPolicy,       // as in layout.policy
  Scores,         // attention only
  FirstOfStage,   // whole layers, the first `every` of each stage
  EverySo,        // whole layers, one in `every`
  EverySecondOp,  // every second matrix product of a layer, and all ops that are not products
};

struct Beyond {
  std::string_view model;         // its name; empty: unknown
  bool compiled = false;          // elementwise work is fused by a compiler
  bool looped_experts = false;    // runs the products of experts one after another
  bool whole_hidden = false;      // tensor ranks hold whole hidden states
  bool whole_states = false;      // each replica has all optimizer states
  std::int64_t copies = 1;        // of the weights that replicas shard
  std::optional<bool> regathers;  // sharded weights for the backward; absent: as the trainer does
  Recomputed recomputed = Recomputed::AsPolicy;
  std::int64_t every = 1;  // see Recomputed
  std::optional<EndWeights> ends;
  Words not_counted;  // settings that the prediction ignores, by name
};

// Apply it to the question before its layout is made, and to that layout before adapt().
void apply(const Beyond& beyond, Question& question);
void apply(const Beyond& beyond, const Workload& workload, Layout& layout);

// Recomputes one in `every` layers of each device. The share is that of the device with most layers.
void recompute_every(std::int64_t every, const Workload& workload, Layout& layout);

// Recomputes the first `layers` layers of each stage, or all: Megatron-LM's --recompute-method block.
void recompute_first(std::int64_t layers, const Workload& workload, Layout& layout);

// torchtitan's selective recomputation by operation: the outputs of wq, wv, w1, w2 and attention stay, those
// of wk, wo and w3 and everything else are recomputed. Half of the layers stand for half of these tensors; no
// expert outputs stay. Gives 3 % less than the bytes of a Llama 3 8B.
void recompute_every_second_product(const Workload& workload, Layout& layout);
bool recomputes_every_second_product(const Workload& workload, const Layout& layout);

}  // namespace penstock::plan
