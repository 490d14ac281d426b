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

// Apply it to the trainer's engine, and to a layout before adapt().
void apply(const Beyond& beyond, sim::Engine& engine);
void apply(const Beyond& beyond, const Workload& workload, Layout& layout);

}  // namespace penstock::plan
