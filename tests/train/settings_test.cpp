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

TEST(Settings, OfUpkeepAreNone) {
  run::Options options;
  options.data.text = "corpus.txt";
  const Settings before = settings_of(run::resolve(options), 1);
  options.train.memory_check = "off";
  options.train.buddy_every = 3;
  EXPECT_TRUE(changes(before, settings_of(run::resolve(options), 1)).empty());
}

TEST(Settings, KnowAHeadSizeThatIsTheUsualOne) {
  run::Options options;
  options.data.text = "corpus.txt";
  const Settings before = settings_of(run::resolve(options), 1);
  options.model.shape.head_size = options.model.shape.hidden / options.model.shape.heads;
  EXPECT_TRUE(changes(before, settings_of(run::resolve(options), 1)).empty());
  options.model.shape.head_size *= 2;
  const std::vector<SettingChange> found = changes(before, settings_of(run::resolve(options), 1));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "model.head_size");
  EXPECT_FALSE(found[0].fits);
}

// Of all that only moves work about, what changes bits is told and fits.
TEST(Settings, ContainWhatChangesBitsAlone) {
  run::Options options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  options.schedule.slices = 4;
  const Settings before = settings_of(run::resolve(options), 1);
  options.schedule.vocabulary_parallel = true;
  options.schedule.exchange = "levelled";
  std::vector<std::string> names;
  for (const SettingChange& change : changes(before, settings_of(run::resolve(options), 1))) {
    EXPECT_TRUE(change.fits);
    names.push_back(change.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"schedule.exchange", "schedule.vocabulary_parallel"}));
}

}  // namespace
}  // namespace penstock::train
