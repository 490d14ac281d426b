// SPDX-License-Identifier: Apache-2.0
#include "model/joined_keys.h"

#include <gtest/gtest.h>

#include <numeric>

namespace penstock::model {
namespace {

using ChunkCounts = std::vector<std::size_t>;

TEST(JoinedKeys, AreOfChunksUntilACallHasEnough) {
  const std::vector<Tokens> lengths{3, 4, 5, 6, 1};
  EXPECT_EQ(joined_chunks(lengths, 7), (ChunkCounts{2, 2, 1}));
  EXPECT_EQ(joined_chunks(lengths, 8), (ChunkCounts{3, 2})) << "the oldest are as many as are left";
  EXPECT_EQ(joined_chunks(lengths, 100), (ChunkCounts{5}));
}

TEST(JoinedKeys, OfLongChunksAreThoseOfOne) {
  const std::vector<Tokens> lengths{8, 9, 8, 3};
  EXPECT_EQ(joined_chunks(lengths, 8), (ChunkCounts{1, 1, 1, 1}));
  EXPECT_EQ(joined_chunks(lengths, 0), (ChunkCounts{1, 1, 1, 1})) << "each by itself";
  EXPECT_EQ(joined_chunks({}, 8), ChunkCounts{});
}

TEST(JoinedKeys, HoldEveryChunkOnceInOrder) {
  std::vector<Tokens> lengths;
  for (Tokens i = 0; i < 40; ++i) lengths.push_back(1 + i * i % 11);
  for (const Tokens least : {0, 1, 5, 12, 60, 1000}) {
    const ChunkCounts counts = joined_chunks(lengths, least);
    std::vector<Tokens> seen;
    for (const auto group : in_groups<Tokens>(lengths, counts)) {
      const Tokens keys = std::accumulate(group.begin(), group.end(), Tokens{0});
      EXPECT_TRUE(group.size() == 1 || keys - group.back() < least) << "no chunk more than it takes";
      seen.insert(seen.end(), group.begin(), group.end());
      EXPECT_TRUE(keys >= least || seen.size() == lengths.size());
    }
    EXPECT_EQ(seen, lengths);
  }
}

TEST(KeysOfBlock, AreMoreForFewerQueriesButNeverMorePairs) {
  EXPECT_EQ(keys_of_block(8192, 8192), 8192);
  EXPECT_EQ(keys_of_block(20000, 8192), 8192) << "of a block of these queries";
  EXPECT_EQ(keys_of_block(4096, 8192), 16384);
  EXPECT_EQ(keys_of_block(1024, 8192), 65536);
  EXPECT_EQ(keys_of_block(6144, 8192), 10880) << "whole tiles";
  EXPECT_EQ(keys_of_block(16, 32), 32) << "less than a tile more";
}

TEST(KeysAtOnce, AreNoMoreThanARepeatableCallTakes) {
  EXPECT_EQ(keys_at_once(1024, true), 16384);
  EXPECT_EQ(keys_at_once(4096, true), 16384);
  EXPECT_EQ(keys_at_once(8192, true), 8192);
  EXPECT_EQ(keys_at_once(8192, false), 16384);
}

}  // namespace
}  // namespace penstock::model
