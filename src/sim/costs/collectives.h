// SPDX-License-Identifier: Apache-2.0
// Seconds of collectives among a group of ranks, and of messages. A group that does not fill its nodes evenly
// is as slow as its thinnest node (mesh/mesh.h): each member there drives its own share of the network.
#pragma once

#include "mesh/mesh.h"
#include "sim/costs/hardware.h"

namespace penstock::sim {

// One pass of a ring, in which each member receives all parts of a tensor of `bytes` but its own: an
// all-gather or a reduce-scatter; an all-reduce is two. `gradients` picks the network's efficiency.
Seconds ring_pass(const Hardware& hardware, const mesh::NodeSpread& group, double bytes,
                  bool gradients = false);

// An all-to-all in which each member sends `bytes` in equal parts to all.
Seconds all_to_all(const Hardware& hardware, const mesh::NodeSpread& group, double bytes);

// A message of `bytes`, inside a node or between two; of no bytes: its latency.
Seconds message(const Hardware& hardware, bool one_node, double bytes);

// A transfer of `bytes` from one stage to the next, from every rank of the stage at once: between nodes
// unless the whole pipeline is in one.
Seconds stage_transfer(const Hardware& hardware, const mesh::Mesh& mesh, double bytes);

// Are all ranks of the pipeline ranks `from` and `to` that talk to each other on one node?
bool in_one_node(const Hardware& hardware, const mesh::Mesh& mesh, int from, int to);

// The expert groups of engines that do not fold: every t-th rank.
mesh::NodeSpread strided_expert_group(const mesh::Mesh& mesh, std::int64_t ranks_per_node);

}  // namespace penstock::sim
