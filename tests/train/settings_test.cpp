// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/settings.h"

#include <gtest/gtest.h>

#include "run/resolve/resolve.h"

namespace penstock::train {
namespace {

Settings settings(std::int64_t ranks, std::int64_t shards) {
  run::Options options;
  options.data.text = "corpus.txt";
  options.parallel.tp = ranks;
  options.parallel.tp_overlap = ranks == 1;
  options.numerics.tensor = shards;
  return settings_of(run::resolve(options), 1);
}

TEST(Settings, ContainTheLogicalShardsAndNotTheRanksThatHaveThem) {
  EXPECT_EQ(tensor_shards_of(settings(2, 4)), 4);
  EXPECT_EQ(tensor_shards_of(settings(2, 0)), 2);
  EXPECT_EQ(tensor_shards_of({}), 1) << "a checkpoint from before there were any";
  for (const std::int64_t ranks : {1, 2, 4}) EXPECT_TRUE(changes(settings(4, 0), settings(ranks, 4)).empty());
}

TEST(Settings, OfOtherLogicalShardsDoNotFit) {
  const std::vector<SettingChange> found = changes(settings(4, 4), settings(2, 2));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "numerics.tensor");
  EXPECT_EQ(found[0].was, "4");
  EXPECT_EQ(found[0].is, "2");
  EXPECT_FALSE(found[0].fits);
}

}  // namespace
}  // namespace penstock::train
