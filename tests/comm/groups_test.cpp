// SPDX-License-Identifier: Apache-2.0
#include "comm/groups.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "comm/group_laws.h"
#include "comm/single.h"
#include "comm/threads.h"

namespace penstock::comm {
namespace {

static_assert(std::is_convertible_v<Communicator&, World>, "the ranks that were started are the world");
static_assert(!std::is_convertible_v<Communicator&, Pipeline> && !std::is_constructible_v<World, Pipeline> &&
                  !std::is_constructible_v<Pipeline, World>,
              "the groups are not confused");

// Every mesh of so many ranks, experts folded in where they fit.
std::vector<mesh::Mesh> meshes_of(int world) {
  std::vector<mesh::Mesh> meshes;
  for (int tensor = 1; tensor <= world; ++tensor) {
    for (int context = 1; tensor * context <= world; ++context) {
      for (int data = 1; tensor * context * data <= world; ++data) {
        if (world % (tensor * context * data) != 0) continue;
        meshes.push_back({.tensor = tensor,
                          .context = context,
                          .data = data,
                          .pipeline = world / (tensor * context * data)});
      }
    }
  }
  return meshes;
}

void expect_groups_of(Communicator& ranks, const mesh::Mesh& mesh) {
  const Groups groups = make_groups(ranks, mesh);
  EXPECT_EQ(&*groups.world, &ranks);
  EXPECT_EQ(groups.pipeline->rank(), mesh.coordinates_of(ranks.rank()).pipeline);
  const auto expected = mesh::members(mesh, mesh::Group::Pipeline, ranks.rank());
  EXPECT_EQ(members(ranks, *groups.pipeline), std::vector<int>(expected.begin(), expected.end()));
  EXPECT_EQ(&*groups.pipeline == &ranks, mesh.pipeline == mesh.world());
  EXPECT_EQ(groups.split_off.empty(), mesh.pipeline == mesh.world()) << "nothing is made twice";
}

TEST(Groups, AreThoseOfTheMesh) {
  expect_groups_of(*make_single(), {});
  for (int world = 2; world <= 8; ++world) {
    const std::vector<mesh::Mesh> meshes = meshes_of(world);
    run_ranks(world, [&](Communicator& ranks) {
      for (const mesh::Mesh& mesh : meshes) expect_groups_of(ranks, mesh);
    });
  }
}

TEST(Groups, ExchangeMessagesOfTheirOwn) {
  run_ranks(8, [](Communicator& ranks) {
    const Groups groups = make_groups(ranks, {.data = 2, .pipeline = 4});
    std::int64_t sum = ranks.rank(), all = ranks.rank();
    groups.pipeline->all_reduce(&sum, 1, Type::I64, Reduction::Sum);
    groups.world->all_reduce(&all, 1, Type::I64, Reduction::Sum);
    EXPECT_EQ(sum, ranks.rank() % 2 == 0 ? 0 + 2 + 4 + 6 : 1 + 3 + 5 + 7);
    EXPECT_EQ(all, 28);
  });
}

}  // namespace
}  // namespace penstock::comm
