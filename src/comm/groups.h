// SPDX-License-Identifier: Apache-2.0
// The groups of a rank, each with its own type: a function that takes World does not accept Pipeline.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "mesh/mesh.h"

namespace penstock::comm {

// A reference to the communicator of one kind of group. The communicator given to a rank at start is the
// world.
template <mesh::Group kGroup>
class Ranks {
 public:
  explicit(kGroup != mesh::Group::World) Ranks(Communicator& ranks) : ranks_(&ranks) {}

  Communicator* operator->() const { return ranks_; }
  Communicator& operator*() const { return *ranks_; }

 private:
  Communicator* ranks_;
};
using World = Ranks<mesh::Group::World>;            // all ranks: losses, norms, checkpoints, records
using Pipeline = Ranks<mesh::Group::Pipeline>;      // rank = device: the stages of one micro-batch
using Replicas = Ranks<mesh::Group::Replica>;       // the same weights: gradients are summed
using Tensor = Ranks<mesh::Group::Tensor>;          // heads and ffn columns of the same layers
using Context = Ranks<mesh::Group::Context>;        // the tokens of a sequence
using Experts = Ranks<mesh::Group::Expert>;         // the experts of one layer
using Vocabulary = Ranks<mesh::Group::Vocabulary>;  // rows of embedding and output matrix: tensor × pipeline

// Ranks with the same weights, as two groups: ranks that shard one set of states (rank =
// StateSharding::shard) and ranks that have the same shard (rank = StateSharding::copy).
struct ReplicaGroups {
  Replicas sharding, copying;
};

struct Groups {
  World world;
  Pipeline pipeline;
  Vocabulary vocabulary;
  std::optional<Tensor> tensor = {};                          // if it has several ranks
  std::optional<Context> context = {};                        // the same
  std::optional<Experts> experts = {};                        // the same
  std::optional<ReplicaGroups> replicas = {};                 // likewise, by mesh::replica_of
  std::optional<ReplicaGroups> expert_replicas = {};          // likewise, by mesh::expert_replica_of
  std::vector<std::unique_ptr<Communicator>> split_off = {};  // a group of all ranks is the world itself
};

// Number of ranks that shard one set of states.
struct ShardingRanks {
  int dense = 1;
  int experts = 0;  // 0: no expert groups, for models without experts
};

// `world` outlives the groups and has as many ranks as the mesh. Collective.
Groups make_groups(Communicator& world, const mesh::Mesh& mesh, ShardingRanks sharding = {});

// Connects all groups except the world, whose messages are in host memory. Collective.
void connect_gpus(const Groups& groups);

}  // namespace penstock::comm
