// SPDX-License-Identifier: Apache-2.0
// Replicas of the pipeline: their number, the states that each keeps, and the groups of the batch whose
// gradients are added in a tree (docs/mesh.md, "Replicas" and "Equal bits").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "run/run.h"

namespace penstock::run {

// Resolves parallel.dp = "auto" to the most replicas that `ranks` ranks, the batch, numerics.replicas,
// parallel.ep and shard_group allow; without `ranks`, to numerics.replicas or 1.
void fit_replicas(Options& options, std::optional<std::int64_t> ranks);

// Whether parallel.dp = "auto" has a number of replicas for so many ranks.
bool holds_replicas(const Options& options, std::int64_t ranks);

// read_options() with fit_replicas(), for callers that start no ranks.
Options read_fitted_options(const std::string& path, std::span<const std::string> overrides = {});

// Whether a run of `replicas` replicas adds the gradients of `groups` groups in the groups' own tree: each
// replica holds 1, 2, 4, ... neighbouring groups, or all.
bool keeps_tree(std::int64_t groups, std::int64_t replicas);

// Fills in numerics.replicas and parallel.shard_group. Throws InputError for numbers that do not divide, with
// the nearest ones that do.
void settle_replicas(Options& options);

// The states that the options select; "auto" gives Optimizer for now. None if there is nothing to share.
schedule::ReplicaSharding replica_sharding_of(const Options& options);

// The same run with parallel.shard = "weights".
Run with_sharded_weights(Run run);

// The state sharding of the rank at `at`.
mesh::StateSharding state_sharding_of(const Run& run, const mesh::Coordinates& at);

// The same for the rank's experts, which t·c·d/e ranks have.
mesh::StateSharding expert_sharding_of(const Run& run, const mesh::Coordinates& at);
// The same for the rank with this number among them (mesh::expert_replica_of).
mesh::StateSharding sharding_of_expert_replica(const Run& run, std::int64_t expert_replica);

// Whether any weights' gradients are summed over ranks and their updates gathered.
bool has_replicas(const Run& run);

// Groups of the batch on each replica.
std::int64_t groups_of_replica(const Options& options);

// Upper bound on a replica's gradient buffers per parameter: one in use, one per level of the tree.
int gradient_buffers(const Options& options);

// Elements of workspace for adding the replicas' gradients: pieces of at most kReplicaPiece elements,
// kReplicaWindow at a time. No share is longer than `longest`.
inline constexpr std::int64_t kReplicaPiece = 1 << 17;
inline constexpr int kReplicaWindow = 4;
std::int64_t replica_room(const Run& run, std::int64_t longest);

}  // namespace penstock::run
