// SPDX-License-Identifier: Apache-2.0
#include "mesh/shard.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace penstock::mesh {
namespace {

struct Tensor {
  std::string name;
  std::vector<std::int64_t> sizes;
};

// A layer of 8 query heads, `kv` key heads of 4, hidden 30, ffn 22, 5 experts; a vocabulary of 101.
std::vector<Tensor> tensors(std::int64_t kv) {
  std::vector<Tensor> all{{"model.embed_tokens.weight", {101, 30}},
                          {"lm_head.weight", {101, 30}},
                          {"model.norm.weight", {30}},
                          {"model.layers.0.self_attn.q_proj.weight", {32, 30}},
                          {"model.layers.0.self_attn.k_proj.weight", {4 * kv, 30}},
                          {"model.layers.0.self_attn.v_proj.weight", {4 * kv, 30}},
                          {"model.layers.0.self_attn.o_proj.weight", {30, 32}},
                          {"model.layers.0.mlp.gate_proj.weight", {22, 30}},
                          {"model.layers.0.mlp.down_proj.weight", {30, 22}},
                          {"model.layers.0.mlp.gate.weight", {5, 30}}};
  for (int i = 0; i < 5; ++i)
    all.push_back({"model.layers.0.mlp.experts." + std::to_string(i) + ".down_proj.weight", {30, 7}});
  return all;
}

std::vector<Sharding> many_shardings() {
  std::vector<Sharding> all;
  for (const int t : {1, 2, 4, 8}) {
    for (const int c : {1, 2}) {
      for (const int d : {1, 3}) {
        for (const int p : {1, 3}) {
          for (const int e : {1, t, t * c, t * c * d}) {
            for (const std::int64_t kv : {1, 2, 8}) {
              for (const bool vocabulary : {false, true}) {
                if (e <= 5)
                  all.push_back({{.tensor = t, .context = c, .expert = e, .data = d, .pipeline = p},
                                 8,
                                 kv,
                                 5,
                                 vocabulary});
              }
            }
          }
        }
      }
    }
  }
  return all;
}

std::int64_t elements(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

// The ranks of one pipeline rank hold the tensor, or those of all where the vocabulary is cut over the
// pipeline.
TEST(Shard, OwnersTileEveryTensorExactlyOnceAndCopiesAreAlike) {
  for (const Sharding& sharding : many_shardings()) {
    for (const Tensor& tensor : tensors(sharding.kv_heads)) {
      const bool over_pipeline = sharding.vocabulary_parallel && cut_of(tensor.name) == Cut::Vocabulary;
      const std::int64_t ranks = over_pipeline ? sharding.mesh.world() : sharding.mesh.ranks_per_stage();
      std::vector<int> owners(static_cast<std::size_t>(elements(tensor.sizes))), holders = owners;
      std::set<std::vector<std::int64_t>> copies;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const Shard shard = shard_of(tensor.name, tensor.sizes, sharding, sharding.mesh.coordinates_of(rank));
        if (shard.count == 0) continue;
        EXPECT_TRUE(copies.insert({shard.begin, shard.copy}).second) << "a copy has a number of its own";
        for (const Range& range : ranges_of(shard, tensor.sizes)) {
          for (std::int64_t i = range.begin; i < range.begin + range.count; ++i) {
            ++holders.at(static_cast<std::size_t>(i));
            owners.at(static_cast<std::size_t>(i)) += shard.copy == 0;
          }
        }
      }
      for (std::size_t i = 0; i < owners.size(); ++i) {
        ASSERT_EQ(owners[i], 1) << tensor.name << " element " << i;
        ASSERT_EQ(holders[i], holders[0]) << tensor.name << " element " << i;
      }
    }
  }
}

TEST(Shard, PaddedBlocksAreEqualInMemory) {
  for (int parts = 1; parts <= 12; ++parts) {
    std::int64_t next = 0;
    for (int index = 0; index < parts; ++index) {
      const Shard shard = padded_block(10, parts, index);
      EXPECT_EQ(shard.held, (10 + parts - 1) / parts);
      EXPECT_EQ(shard.begin, next);
      next += shard.count;
    }
    EXPECT_EQ(next, 10);
  }
}

TEST(Shard, SharesOfStatesAreCutAtMultiplesOf64AndDifferByOneUnitAtMost) {
  for (const std::int64_t elements : {1, 63, 64, 1000, 4096, 100003}) {
    for (int replicas = 1; replicas <= 9; ++replicas) {
      std::int64_t next = 0, most = 0;
      for (int index = 0; index < replicas; ++index) {
        const Shard share = flat_share(elements, replicas, index);
        EXPECT_EQ(share.begin, next);
        EXPECT_EQ(share.begin % kShareUnit, 0);
        next += share.count;
        most = std::max(most, share.count);
      }
      EXPECT_EQ(next, elements);
      EXPECT_LE(most, elements / replicas + 2 * kShareUnit);
    }
  }
}

TEST(Shard, RangesOfColumnsAreOneForEachRow) {
  const Shard columns{.dimension = 1, .begin = 2, .count = 3, .held = 3};
  const auto ranges = ranges_of(columns, {2, 8});
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[1].begin, 10);
  EXPECT_EQ(ranges[1].count, 3);
  EXPECT_EQ(ranges[1].own_begin, 3);
}

}  // namespace
}  // namespace penstock::mesh
