// SPDX-License-Identifier: Apache-2.0
// The rank layout: mesh sizes, ranks and coordinates, process-group members, the node of each rank. Pure
// arithmetic, used by planner, simulator, trainer, checkpoint and report.
//
// World = t·c·d·p ranks. rank = ((r_p·d + r_d)·c + r_c)·t + r_t, so tensor groups lie inside a node and
// pipeline neighbours on different nodes, as in Megatron-LM. An expert group is e consecutive ranks among the
// t·c·d ranks of one pipeline rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mesh/axis.h"

namespace penstock::mesh {

struct Coordinates {
  int tensor = 0;
  int context = 0;
  int data = 0;
  int pipeline = 0;
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

// Sizes, each at least 1. `expert` divides tensor·context·data.
struct Mesh {
  int tensor = 1;    // t
  int context = 1;   // c
  int expert = 1;    // e
  int data = 1;      // d
  int pipeline = 1;  // p

  std::int64_t world() const { return ranks_per_stage() * pipeline; }
  // Ranks per pipeline rank: t·c·d.
  std::int64_t ranks_per_stage() const { return std::int64_t{tensor} * context * data; }
  // Ranks with the same dense weights: c·d; with the same expert weights: t·c·d/e.
  std::int64_t replicas() const { return std::int64_t{context} * data; }
  std::int64_t expert_replicas() const { return ranks_per_stage() / expert; }

  Coordinates coordinates_of(std::int64_t rank) const;
  std::int64_t rank_of(const Coordinates& at) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;
};

std::string print_mesh(const Mesh& mesh);  // "t4 c2 p8 d4"
// Coordinates of a rank, "t1 p1", without axes of size 1.
std::string print_place(const Mesh& mesh, std::int64_t rank);

inline constexpr std::int64_t kMostRanks = 1 << 24;

// Throws InputError if expert does not divide tensor·context·data, with the nearest values that do, and for
// more than kMostRanks ranks.
void validate(const Mesh& mesh);

// Ranks of the group of this kind that contains `rank`, ascending.
std::vector<std::int64_t> members(const Mesh& mesh, Group group, std::int64_t rank);
std::int64_t size(const Mesh& mesh, Group group);

// Index of a rank in its group: members(mesh, group, rank)[position] == rank.
std::int64_t position(const Mesh& mesh, Group group, std::int64_t rank);

// The replica's index among the c·d ranks with the same weights, in the order in which their gradients are
// added: data ranks vary fastest, so that the sum over a context rank's part of the batch does not depend on
// d (docs/mesh.md, "Equal bits").
std::int64_t replica_of(const Mesh& mesh, const Coordinates& at);

// The same among the t·c·d/e ranks with the same experts, ordered by tensor rank, then by replica_of.
std::int64_t expert_replica_of(const Mesh& mesh, const Coordinates& at);
// expert_replica_of for all ranks of a stage.
std::vector<std::int64_t> expert_replicas_of_stage(const Mesh& mesh);

// Node k holds the ranks k·g .. k·g + g − 1.
inline std::int64_t node_of(std::int64_t rank, std::int64_t ranks_per_node) { return rank / ranks_per_node; }

// Distribution of a group over nodes. An uneven group is as slow as its node with the fewest members, since
// each member drives only its own share of the network.
struct NodeSpread {
  int members = 1;
  bool one_node = true;
  int nodes = 1;
  int least_members = 1;  // on the node with the fewest
};

// The spread of the `members` ranks first, first + stride, ...
NodeSpread node_spread(std::int64_t first, std::int64_t stride, int members, std::int64_t ranks_per_node);

// The worst spread of such groups in `blocks` consecutive blocks of `width` = stride · members ranks, each
// with `stride` interleaved groups.
NodeSpread thinnest(std::int64_t width, std::int64_t blocks, std::int64_t stride, int members,
                    std::int64_t ranks_per_node);

// The worst spread of all groups of a kind. Every kind but Vocabulary, whose ranks are not evenly spaced.
NodeSpread thinnest(const Mesh& mesh, Group group, std::int64_t ranks_per_node);

// The worst spread of groups of `shards` replicas that are consecutive in rank order (context ranks first),
// as other trainers shard their optimizer states.
NodeSpread thinnest_shards(const Mesh& mesh, int shards, std::int64_t ranks_per_node);

// The worst spreads of our own groups: `shards` ranks consecutive in replica_of (for experts, in
// expert_replica_of) that share one set of states; and the ranks with copies of one share.
struct ShardingSpread {
  NodeSpread shards, copies;
};
ShardingSpread thinnest_sharding(const Mesh& mesh, int shards, std::int64_t ranks_per_node);
ShardingSpread thinnest_expert_sharding(const Mesh& mesh, int shards, std::int64_t ranks_per_node);

}  // namespace penstock::mesh
