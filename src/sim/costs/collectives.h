// SPDX-License-Identifier: Apache-2.0
// Seconds of collectives in a group of ranks, and of messages. A group that does not fill its nodes evenly is
// as slow as the node with the fewest members (mesh/mesh.h): each member drives its own share of the network.
#pragma once

#include "mesh/mesh.h"
#include "model/shape.h"
#include "sim/costs/hardware.h"

namespace penstock::sim {

// One ring pass over a tensor of `bytes`, an all-gather or a reduce-scatter: each member receives all parts
// but its own. An all-reduce takes two passes. Gradients move at network.gradient_efficiency.
enum class Payload : bool { Activations, Gradients };
Seconds ring_pass(const Hardware& hardware, const mesh::NodeSpread& group, double bytes,
                  Payload payload = Payload::Activations);

// An all-to-all: each member sends `bytes` in equal parts to all members.
Seconds all_to_all(const Hardware& hardware, const mesh::NodeSpread& group, double bytes);

// A message of `bytes`, inside a node or between two nodes; 0 bytes: the latency.
Seconds message(const Hardware& hardware, bool one_node, double bytes);

// A transfer of `bytes` from each rank of a stage to the next stage, all at once: between nodes, unless the
// whole pipeline is in one node.
Seconds stage_transfer(const Hardware& hardware, const mesh::Mesh& mesh, double bytes);

// The messages of a vocabulary visit (nn/vocabulary_visit.h): between stages those of a column; inside each
// stage the rows of all columns, and the parts of their gradients. `own_hidden` as in model::visit_bytes.
Seconds visit_messages(const Hardware& hardware, const mesh::Mesh& mesh, double own_hidden,
                       model::Precision precision);

// Returns whether all communicating pairs of ranks of the pipeline ranks `from` and `to` are on one node.
bool in_one_node(const Hardware& hardware, const mesh::Mesh& mesh, int from, int to);

// The expert groups of engines without folded experts: every t-th rank.
mesh::NodeSpread strided_expert_group(const mesh::Mesh& mesh, std::int64_t ranks_per_node);

}  // namespace penstock::sim
