// SPDX-License-Identifier: Apache-2.0
#include "comm/groups.h"

#include <utility>

namespace penstock::comm {

Groups make_groups(Communicator& world, const mesh::Mesh& mesh, int shards) {
  PENSTOCK_CHECK(world.size() == mesh.world(), "a mesh has the ranks that were started");
  std::vector<std::unique_ptr<Communicator>> split_off;
  const auto group = [&](mesh::Group kind) -> Communicator& {
    if (mesh::size(mesh, kind) == mesh.world()) return world;
    const auto first = static_cast<int>(mesh::members(mesh, kind, world.rank()).front());
    return *split_off.emplace_back(world.split(first, world.rank()));
  };
  Communicator& pipeline = group(mesh::Group::Pipeline);
  Communicator& vocabulary = mesh.tensor > 1 ? group(mesh::Group::Vocabulary) : pipeline;
  Groups groups{World(world), Pipeline(pipeline), Vocabulary(vocabulary)};
  if (mesh.tensor > 1) groups.tensor = Tensor(group(mesh::Group::Tensor));
  if (mesh.context > 1) groups.context = Context(group(mesh::Group::Context));
  if (mesh.replicas() > 1) {
    Communicator& replicas = group(mesh::Group::Replica);
    const auto replica = static_cast<int>(mesh::replica_of(mesh, mesh.coordinates_of(world.rank())));
    const bool in_order = mesh.context == 1 || mesh.data == 1;
    const auto part = [&](int color, bool all) -> Communicator& {
      return all && in_order ? replicas : *split_off.emplace_back(replicas.split(color, replica));
    };
    groups.sharing = Replicas(part(replica / shards, shards == replicas.size()));
    groups.copying = Replicas(part(replica % shards, shards == 1));
  }
  groups.split_off = std::move(split_off);
  return groups;
}

}  // namespace penstock::comm
