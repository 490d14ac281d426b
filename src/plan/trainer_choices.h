// SPDX-License-Identifier: Apache-2.0
// What layouts for other trainers choose that a plan for Penstock's own does not: recomputation of parts of
// the layers, and how replicas shard weights.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/trainer.h"

namespace penstock::plan {

// Recomputes one in `every` layers of each device. The share is that of the device with most layers.
void recompute_every(std::int64_t every, const Workload& workload, Layout& layout);

// Recomputes the first `layers` layers of each stage, or all: Megatron-LM's --recompute-method block.
void recompute_first(std::int64_t layers, const Workload& workload, Layout& layout);

// torchtitan's selective recomputation by operation: the outputs of wq, wv, w1, w2 and attention stay, those
// of wk, wo and w3 and everything else are recomputed. Half of the layers stand for half of these tensors; no
// expert outputs stay. Gives 3 % less than the bytes of a Llama 3 8B.
void recompute_every_second_product(const Workload& workload, Layout& layout);
bool recomputes_every_second_product(const Layout& layout);

// The layout with each of the trainer's recomputations of parts of the layers, those with the same share of
// them once; of the first layers of a stage, kMostParts numbers at most.
inline constexpr std::int64_t kMostParts = 128;
std::vector<Layout> partly_recomputed(const Trainer& trainer, const Workload& workload, const Layout& layout);

// Whether a trainer that shards weights over replicas keeps them from forward to backward, and over how many
// replicas it shards them: all that it has of these. The first is the trainer's default.
std::vector<ShardedWeights> shardings_to_try(const Trainer& trainer, const Layout& layout);

}  // namespace penstock::plan
