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
  Groups groups{World(world), Pipeline(group(mesh::Group::Pipeline))};
  if (mesh.replicas() > 1) {
    Communicator& replicas = group(mesh::Group::Replica);
    const int replica = replicas.rank();
    const auto part = [&](int color, bool all) -> Communicator& {
      return all ? replicas : *split_off.emplace_back(replicas.split(color, replica));
    };
    groups.sharing = Replicas(part(replica / shards, shards == replicas.size()));
    groups.copying = Replicas(part(replica % shards, shards == 1));
  }
  groups.split_off = std::move(split_off);
  return groups;
}

}  // namespace penstock::comm
