// SPDX-License-Identifier: Apache-2.0
#include "comm/groups.h"

#include <utility>

namespace penstock::comm {

Groups make_groups(Communicator& world, const mesh::Mesh& mesh) {
  PENSTOCK_CHECK(world.size() == mesh.world(), "a mesh has the ranks that were started");
  std::vector<std::unique_ptr<Communicator>> split_off;
  const auto group = [&](mesh::Group kind) -> Communicator& {
    if (mesh::size(mesh, kind) == mesh.world()) return world;
    const auto first = static_cast<int>(mesh::members(mesh, kind, world.rank()).front());
    return *split_off.emplace_back(world.split(first, world.rank()));
  };
  const Pipeline pipeline(group(mesh::Group::Pipeline));
  return {World(world), pipeline, std::move(split_off)};
}

}  // namespace penstock::comm
