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
using Vocabulary = Ranks<mesh::Group::Vocabulary>;  // rows of embedding and output matrix: tensor × pipeline

struct Groups {
  World world;
  Pipeline pipeline;
  Vocabulary vocabulary;
  std::optional<Tensor> tensor = {};    // of several ranks
  std::optional<Context> context = {};  // the same
  // Of several replicas, those that share one set of states (rank = StateSharing::shard) and those that have
  // the same share (rank = StateSharing::copy). Their order is by mesh::replica_of.
  std::optional<Replicas> sharing = {}, copying = {};
  std::vector<std::unique_ptr<Communicator>> split_off;  // a group of all ranks is the world itself
};

// `world` outlives the groups and has as many ranks as the mesh, of whose replicas so many share one set of
// states. Collective.
Groups make_groups(Communicator& world, const mesh::Mesh& mesh, int shards = 1);

}  // namespace penstock::comm
