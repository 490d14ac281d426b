// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/settings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "run/resolve/resolve.h"
#include "scratch.h"
#include "train/small_run.h"

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

// Its content is compared with what a checkpoint tells of it.
TEST(Settings, AreTheSameWhereDataHasMoved) {
  run::Options options;
  options.data.text = "corpus.txt";
  options.model.weights = "start.safetensors";
  const Settings before = settings_of(run::resolve(options), 1);
  options.data.text = "elsewhere.txt";
  options.model.weights.clear();
  const Settings now = settings_of(run::resolve(options), 1);
  EXPECT_TRUE(changes(before, now).empty());
  const std::vector<SettingChange> moved = moved_data(before, now);
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].name, "data.text");
  EXPECT_TRUE(moved_data(now, now).empty());
}

// Work decides where slices are cut, and with documents which device attends for which.
TEST(Settings, ContainWhatSharesOutWorkWhereBitsDependOnIt) {
  run::Options options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  options.schedule.slices = 4;
  const auto names_of_changes = [&](auto change) {
    const Settings before = settings_of(run::resolve(options), 1);
    run::Options changed = options;
    change(changed.schedule);
    std::vector<std::string> names;
    for (const SettingChange& found : changes(before, settings_of(run::resolve(changed), 1)))
      names.push_back(found.name);
    return names;
  };
  const auto dearer = [](run::ScheduleOptions& schedule) { schedule.attention_cost = 3; };
  const auto within_one = [](run::ScheduleOptions& schedule) { schedule.exchange_limit = 1; };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of_changes(dearer), Names());
  EXPECT_EQ(names_of_changes(within_one), Names());
  options.schedule.exchange = "levelled";
  EXPECT_EQ(names_of_changes(dearer), Names());
  EXPECT_EQ(names_of_changes(within_one), Names{"schedule.exchange_limit"});
  options.schedule.exchange = "off";
  options.schedule.cut = "work";
  EXPECT_EQ(names_of_changes(dearer), Names{"schedule.attention_cost"});
}

TEST(Settings, OrderAWindowBySliceTokensWhereThesePadOrDoNot) {
  EXPECT_TRUE(orders_a_window({"schedule.slice_tokens", "0", "1024"}));
  EXPECT_FALSE(orders_a_window({"schedule.slice_tokens", "512", "1024"}));
  EXPECT_TRUE(orders_a_window({"train.batch", "4", "8"}));
  EXPECT_FALSE(orders_a_window({"train.lr", "0.1", "0.2"}));
}

// OtherOrders (bits_test.cpp) has the reason.
TEST(Settings, TellOrdersApartThatAddGradientsUpOtherwise) {
  const auto of_file = [](const std::string& name, int devices) {
    run::Options options = testing::small_options("", devices, 0, "f32");
    options.schedule.file = PENSTOCK_SOURCE_DIR "/tests/data/pytorch/" + name + ".csv";
    return settings_of(run::resolve(options), 1);
  };
  const Settings ascending = of_file("gpipe_p4_m8", 4);
  EXPECT_TRUE(changes(ascending, of_file("interleaved1f1b_p3_m8_v2", 3)).empty());
  const std::vector<SettingChange> found = changes(ascending, of_file("loopedbfs_p3_m8_v2", 3));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, kGradientOrder);
  EXPECT_EQ(found[0].was, "\"ascending\"");
  EXPECT_TRUE(found[0].fits);
}

// A whole backward adds up norms' gradients as an I does, and matrices' as a W does.
TEST(Settings, CountAWholeBackwardAmongBothOfItsHalves) {
  const Scratch scratch;
  const auto order_of = [&](const std::string& first_two) {
    scratch.write("my.csv", "0F0,0F1,0F2,0F3,0F4,0F5,0F6,0F7," + first_two + ",0B2,0B3,0B4,0B5,0B6,0B7\n");
    run::Options options = testing::small_options("", 1, 0, "f32");
    options.schedule.file = scratch / "my.csv";
    const Settings all = settings_of(run::resolve(options), 1);
    return std::ranges::find(all, kGradientOrder, &std::pair<std::string, std::string>::first)->second;
  };
  for (const char* ascending : {"0B0,0I1,0W1", "0I0,0I1,0W0,0W1", "0I0,0W0,0B1"})
    EXPECT_EQ(order_of(ascending), "\"ascending\"") << ascending;
  for (const char* other : {"0I1,0B0,0W1", "0I0,0B1,0W0", "0I1,0I0,0W0,0W1"})
    EXPECT_NE(order_of(other), "\"ascending\"") << other;
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
