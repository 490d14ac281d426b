// SPDX-License-Identifier: Apache-2.0
#include "mesh/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/error.h"

namespace penstock::mesh {
namespace {

// Every mesh of small sizes, with every expert size that fits.
std::vector<Mesh> many_meshes() {
  std::vector<Mesh> meshes;
  for (const int t : {1, 2, 3, 4}) {
    for (const int c : {1, 2, 3}) {
      for (const int d : {1, 2, 5}) {
        for (const int p : {1, 2, 3, 8}) {
          for (int e = 1; e <= t * c * d; ++e) {
            if (t * c * d % e == 0)
              meshes.push_back({.tensor = t, .context = c, .expert = e, .data = d, .pipeline = p});
          }
        }
      }
    }
  }
  return meshes;
}

TEST(Mesh, CoordinatesAndRanksAreInverse) {
  for (const Mesh& mesh : many_meshes()) {
    std::int64_t rank = 0;
    for (int p = 0; p < mesh.pipeline; ++p) {
      for (int d = 0; d < mesh.data; ++d) {
        for (int c = 0; c < mesh.context; ++c) {
          for (int t = 0; t < mesh.tensor; ++t, ++rank) {
            const Coordinates at{.tensor = t, .context = c, .data = d, .pipeline = p};
            ASSERT_EQ(mesh.rank_of(at), rank);
            ASSERT_EQ(mesh.coordinates_of(rank), at);
          }
        }
      }
    }
    ASSERT_EQ(rank, mesh.world());
  }
}

TEST(Mesh, GroupsOfEachKindPartitionTheWorld) {
  for (const Mesh& mesh : many_meshes()) {
    for (const Group group : kGroups) {
      std::map<std::vector<std::int64_t>, int> groups;
      for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
        const auto ranks = members(mesh, group, rank);
        ASSERT_EQ(std::ssize(ranks), size(mesh, group)) << name_of(group);
        ASSERT_EQ(ranks.at(position(mesh, group, rank)), rank) << name_of(group);
        ++groups[ranks];
      }
      std::set<std::int64_t> seen;
      for (const auto& [ranks, times] : groups) {
        ASSERT_EQ(times, std::ssize(ranks)) << "all members see the same group";
        for (const std::int64_t rank : ranks) ASSERT_TRUE(seen.insert(rank).second) << name_of(group);
      }
      ASSERT_EQ(std::ssize(seen), mesh.world());
    }
  }
}

TEST(Mesh, GroupsHoldTheRanksThatDifferOnTheirAxesAlone) {
  for (const Mesh& mesh : many_meshes()) {
    for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
      const Coordinates own = mesh.coordinates_of(rank);
      const auto expect = [&](Group group, auto&& same) {
        std::vector<std::int64_t> expected;
        for (std::int64_t other = 0; other < mesh.world(); ++other) {
          if (same(mesh.coordinates_of(other))) expected.push_back(other);
        }
        ASSERT_EQ(members(mesh, group, rank), expected) << name_of(group);
      };
      using At = Coordinates;
      expect(Group::Tensor, [&](const At& at) {
        return at.context == own.context && at.data == own.data && at.pipeline == own.pipeline;
      });
      expect(Group::Context, [&](const At& at) {
        return at.tensor == own.tensor && at.data == own.data && at.pipeline == own.pipeline;
      });
      expect(Group::Replica,
             [&](const At& at) { return at.tensor == own.tensor && at.pipeline == own.pipeline; });
      expect(Group::Pipeline, [&](const At& at) {
        return at.tensor == own.tensor && at.context == own.context && at.data == own.data;
      });
      expect(Group::Vocabulary,
             [&](const At& at) { return at.context == own.context && at.data == own.data; });
    }
  }
}

TEST(Mesh, ReplicasOfExpertsAreCountedAtOnceAsOneByOne) {
  for (const Mesh& mesh : {Mesh{}, Mesh{.tensor = 2, .context = 3, .data = 4},
                           Mesh{.tensor = 2, .expert = 4, .data = 4, .pipeline = 2},
                           Mesh{.tensor = 4, .context = 3, .expert = 6, .data = 2},
                           Mesh{.context = 2, .expert = 6, .data = 6}}) {
    const std::vector<std::int64_t> replicas = expert_replicas_of_stage(mesh);
    ASSERT_EQ(std::ssize(replicas), mesh.ranks_per_stage());
    for (std::int64_t rank = 0; rank < mesh.ranks_per_stage(); ++rank) {
      EXPECT_EQ(replicas[static_cast<std::size_t>(rank)], expert_replica_of(mesh, mesh.coordinates_of(rank)))
          << print_mesh(mesh) << " rank " << rank;
    }
  }
}

TEST(Mesh, ExpertGroupsAreConsecutiveRanksOfOneStage) {
  const Mesh mesh{.tensor = 2, .context = 2, .expert = 4, .data = 2, .pipeline = 2};
  EXPECT_EQ(members(mesh, Group::Expert, 5), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(members(mesh, Group::Expert, 8), (std::vector<std::int64_t>{8, 9, 10, 11}));
  EXPECT_EQ(members(mesh, Group::ExpertReplica, 5), (std::vector<std::int64_t>{1, 5}));
}

TEST(Mesh, RefusesExpertsThatDoNotDivideTheRanksOfAStageAndNamesTheNearest) {
  try {
    validate({.tensor = 2, .expert = 5, .data = 4});
    FAIL() << "5 does not divide 8";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "parallel.ep = 5 does not divide tp·cp·dp = 8; use 4 or 8");
  }
  try {
    validate({.tensor = 4096, .expert = 4095, .data = 4093});
    FAIL() << "4095 does not divide 2^12 · 4093";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "parallel.ep = 4095 does not divide tp·cp·dp = 16764928; use 4093 or 4096");
  }
}

TEST(Mesh, RefusesMoreRanksThanAreCounted) {
  validate({.tensor = 256, .data = 256, .pipeline = 256});
  for (const Mesh& mesh : {Mesh{.tensor = 257, .data = 256, .pipeline = 256},
                           Mesh{.tensor = 65536, .context = 65536, .data = 65536, .pipeline = 65536}}) {
    try {
      validate(mesh);
      FAIL() << print_mesh(mesh);
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "parallel.tp·cp·dp·pp is more than 16777216 ranks");
    }
  }
}

// Counts members node by node.
NodeSpread counted(const std::vector<std::int64_t>& ranks, std::int64_t g) {
  std::map<std::int64_t, int> nodes;
  for (const std::int64_t rank : ranks) ++nodes[node_of(rank, g)];
  NodeSpread result{static_cast<int>(ranks.size()), nodes.size() == 1, static_cast<int>(nodes.size()),
                    static_cast<int>(ranks.size())};
  for (const auto& [node, count] : nodes) result.least_members = std::min(result.least_members, count);
  return result;
}

TEST(Mesh, NodeSpreadIsWhatCountingFinds) {
  for (const std::int64_t stride : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    for (std::int64_t first = 0; first < 16; ++first) {
      for (int count = 1; count <= 20; ++count) {
        std::vector<std::int64_t> ranks;
        for (int i = 0; i < count; ++i) ranks.push_back(first + i * stride);
        const NodeSpread expected = counted(ranks, 8), found = node_spread(first, stride, count, 8);
        EXPECT_EQ(found.one_node, expected.one_node);
        EXPECT_EQ(found.nodes, expected.nodes) << first << " " << stride << " " << count;
        EXPECT_EQ(found.least_members, expected.least_members) << first << " " << stride << " " << count;
      }
    }
  }
}

using Groups = std::map<std::vector<std::int64_t>, std::vector<std::int64_t>>;  // ranks by what they share

void expect_worst(const Groups& groups, std::int64_t g, const NodeSpread& found, const std::string& where) {
  NodeSpread worst = counted(groups.begin()->second, g);
  for (const auto& [shared, ranks] : groups) {
    const NodeSpread here = counted(ranks, g);
    const bool thinner = worst.one_node || here.least_members < worst.least_members;
    if (!here.one_node && thinner) worst = here;
  }
  EXPECT_EQ(found.members, worst.members) << where;
  EXPECT_EQ(found.one_node, worst.one_node) << where;
  EXPECT_EQ(found.least_members, worst.least_members) << where;
}

TEST(Mesh, TheThinnestGroupIsTheOneThatTryingAllFinds) {
  for (const Mesh& mesh : many_meshes()) {
    for (const Group group : kGroups) {
      if (group == Group::Vocabulary) continue;
      Groups groups;
      for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
        if (position(mesh, group, rank) == 0) groups[{rank}] = members(mesh, group, rank);
      }
      for (const std::int64_t g : {6, 8}) {
        const std::string where =
            print_mesh(mesh) + " " + std::string(name_of(group)) + " " + std::to_string(g);
        expect_worst(groups, g, thinnest(mesh, group, g), where);
      }
    }
  }
  const Mesh three_nodes{.expert = 2, .data = 6, .pipeline = 4};
  EXPECT_FALSE(thinnest(three_nodes, Group::ExpertReplica, 8).one_node) << "6, 8 and 10 of the second stage";
}

TEST(Mesh, TheThinnestShardGroupIsTheOneThatTryingAllFinds) {
  for (const Mesh& mesh : many_meshes()) {
    std::vector<std::int64_t> dense, experts;  // [rank] number among those with the same weights
    for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
      const Coordinates at = mesh.coordinates_of(rank);
      dense.push_back(at.context * mesh.data + at.data);
      experts.push_back(expert_replica_of(mesh, at));
    }
    const auto expect_spread = [&](const std::vector<std::int64_t>& replicas, int kinds, int shards,
                                   const ShardingSpread& found) {
      Groups sharding, copying;
      for (std::int64_t rank = 0; rank < mesh.world(); ++rank) {
        const std::int64_t stage = rank / mesh.ranks_per_stage();
        const std::int64_t kind = rank % mesh.ranks_per_stage() % kinds;
        const std::int64_t replica = replicas[static_cast<std::size_t>(rank)];
        sharding[{stage, kind, replica / shards}].push_back(rank);
        copying[{stage, kind, replica % shards}].push_back(rank);
      }
      const std::string where = print_mesh(mesh) + " " + std::to_string(shards);
      expect_worst(sharding, 8, found.shards, where);
      expect_worst(copying, 8, found.copies, where);
    };
    for (int shards = 1; shards <= mesh.ranks_per_stage(); ++shards) {
      if (mesh.expert == 1 && mesh.replicas() % shards == 0)
        expect_spread(dense, mesh.tensor, shards, thinnest_sharding(mesh, shards, 8));
      if (mesh.expert_replicas() % shards == 0)
        expect_spread(experts, mesh.expert, shards, thinnest_expert_sharding(mesh, shards, 8));
    }
  }
  const NodeSpread far = thinnest_sharding({.context = 8, .data = 8}, 8, 8).shards;
  EXPECT_EQ(far.nodes, 8) << "the data ranks of one context rank";
}

}  // namespace
}  // namespace penstock::mesh
