// SPDX-License-Identifier: Apache-2.0
#include "comm/groups.h"

#include <utility>

namespace penstock::comm {
namespace {

// Splits groups off the world and keeps them.
class Splitter {
 public:
  Splitter(Communicator& world, const mesh::Mesh& mesh) : world_(world), mesh_(mesh) {}

  Communicator& group(mesh::Group kind) {
    if (mesh::size(mesh_, kind) == mesh_.world()) return world_;
    const auto first = static_cast<int>(mesh::members(mesh_, kind, world_.rank()).front());
    return *split_off_.emplace_back(world_.split(first, world_.rank()));
  }

  // Splits `all`, a group in which this rank has number `place`, which need not be its rank there.
  ReplicaGroups replicas(Communicator& all, std::int64_t place, bool in_order, int shards) {
    const auto number = static_cast<int>(place);
    const auto part = [&](int color, bool whole) -> Communicator& {
      return whole && in_order ? all : *split_off_.emplace_back(all.split(color, number));
    };
    Communicator& sharding = part(number / shards, shards == all.size());
    Communicator& copying = part(number % shards, shards == 1);
    return {Replicas(sharding), Replicas(copying)};
  }

  std::vector<std::unique_ptr<Communicator>> take() { return std::move(split_off_); }

 private:
  Communicator& world_;
  const mesh::Mesh& mesh_;
  std::vector<std::unique_ptr<Communicator>> split_off_;
};

}  // namespace

Groups make_groups(Communicator& world, const mesh::Mesh& mesh, ShardingRanks sharding) {
  PENSTOCK_CHECK(world.size() == mesh.world(), "a mesh has the ranks that were started");
  Splitter split(world, mesh);
  const mesh::Coordinates at = mesh.coordinates_of(world.rank());
  Communicator& pipeline = split.group(mesh::Group::Pipeline);
  Communicator& vocabulary = mesh.tensor > 1 ? split.group(mesh::Group::Vocabulary) : pipeline;
  Groups groups{World(world), Pipeline(pipeline), Vocabulary(vocabulary)};
  if (mesh.tensor > 1) groups.tensor = Tensor(split.group(mesh::Group::Tensor));
  if (mesh.context > 1) groups.context = Context(split.group(mesh::Group::Context));
  if (mesh.replicas() > 1) {
    const bool in_order = mesh.context == 1 || mesh.data == 1;
    groups.replicas = split.replicas(split.group(mesh::Group::Replica), mesh::replica_of(mesh, at), in_order,
                                     sharding.dense);
  }
  if (sharding.experts > 0 && mesh.expert > 1) groups.experts = Experts(split.group(mesh::Group::Expert));
  const bool like_dense =
      mesh.expert_replicas() == mesh.replicas() && mesh.tensor == 1 && sharding.experts == sharding.dense;
  if (sharding.experts > 0 && like_dense) {
    groups.expert_replicas = groups.replicas;
  } else if (sharding.experts > 0 && mesh.expert_replicas() > 1) {
    groups.expert_replicas = split.replicas(split.group(mesh::Group::ExpertReplica),
                                            mesh::expert_replica_of(mesh, at), false, sharding.experts);
  }
  groups.split_off = split.take();
  return groups;
}

void connect_gpus(const Groups& groups) {
  groups.pipeline->connect_gpus();
  groups.vocabulary->connect_gpus();
  if (groups.tensor) (*groups.tensor)->connect_gpus();
  if (groups.context) (*groups.context)->connect_gpus();
  if (groups.experts) (*groups.experts)->connect_gpus();
  for (const std::optional<ReplicaGroups>& replicas : {groups.replicas, groups.expert_replicas}) {
    if (!replicas) continue;
    replicas->sharding->connect_gpus();
    replicas->copying->connect_gpus();
  }
}

}  // namespace penstock::comm
