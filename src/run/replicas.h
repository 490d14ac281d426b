// SPDX-License-Identifier: Apache-2.0
// Replicas of the pipeline: how many there are, what each keeps of the states, and the groups of the batch
// whose gradients are added in a tree (docs/mesh.md, "Replicas" and "Equal bits").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "run/run.h"

namespace penstock::run {

// parallel.dp = "auto": the most replicas that `ranks` ranks, the batch, numerics.replicas, parallel.ep and
// shard_group allow; without a number of ranks numerics.replicas, or 1.
void fit_replicas(Options& options, std::optional<std::int64_t> ranks);

// read_options() for those who start no ranks, with the replicas fitted.
Options read_fitted_options(const std::string& path, std::span<const std::string> overrides = {});

// Whether a run of so many replicas adds the gradients of `groups` groups in the groups' own tree: each
// replica holds 1, 2, 4, ... neighbouring groups, or all.
bool keeps_tree(std::int64_t groups, std::int64_t replicas);

// Fills in numerics.replicas and parallel.shard_group. Throws InputError for numbers that do not divide, with
// the nearest that do.
void settle_replicas(Options& options);

// What the options say about states; "auto" is Shared for now. Whole where there is nothing to share.
schedule::ReplicaStates states_of(const Options& options);

// The same run with parallel.shard = "weights".
Run with_passing_weights(Run run);

// The share of states of the rank there.
mesh::StateSharing sharing_of(const Run& run, const mesh::Coordinates& at);

// The same of the rank's experts, which t·c·d/e ranks have.
mesh::StateSharing expert_sharing_of(const Run& run, const mesh::Coordinates& at);
// Of the rank that is this one of them (mesh::expert_replica_of).
mesh::StateSharing sharing_of_expert_replica(const Run& run, std::int64_t expert_replica);

// Whether gradients of any weights are summed over ranks, and masters' updates gathered.
bool has_replicas(const Run& run);

// Groups of the batch on each replica.
std::int64_t groups_of_replica(const Options& options);

// Gradient buffers of each parameter that a replica needs at most: one in use, one for each level of the
// tree.
int gradient_buffers(const Options& options);

// Elements of room in which gradients of the replicas are added, where no share is longer than `longest`:
// pieces of at most kReplicaPiece, kReplicaWindow at a time.
inline constexpr std::int64_t kReplicaPiece = 1 << 17;
inline constexpr int kReplicaWindow = 4;
std::int64_t replica_room(const Run& run, std::int64_t longest);

}  // namespace penstock::run
