// SPDX-License-Identifier: Apache-2.0
// The groups of a rank, each with its own type: a function that takes World does not accept Pipeline.
#pragma once

#include <memory>
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
using World = Ranks<mesh::Group::World>;        // all ranks: losses, norms, checkpoints, records
using Pipeline = Ranks<mesh::Group::Pipeline>;  // rank = device: the stages of one micro-batch

struct Groups {
  World world;
  Pipeline pipeline;
  std::vector<std::unique_ptr<Communicator>> split_off;  // a group of all ranks is the world itself
};

// `world` outlives the groups and has as many ranks as the mesh. Collective.
Groups make_groups(Communicator& world, const mesh::Mesh& mesh);

}  // namespace penstock::comm
