// SPDX-License-Identifier: Apache-2.0
// Replicas, groups of the batch and shares of states: what is refused, and what is chosen.
#include "run/replicas.h"

#include <gtest/gtest.h>

#include "base/option_text.h"
#include "changed.h"
#include "scratch.h"

namespace penstock::run {
namespace {

// A legal run of so many replicas, groups and sequences.
std::string refused(std::int64_t replicas, std::int64_t groups, std::int64_t batch,
                    std::int64_t micro_batch = 1) {
  return refusal([&](Options& o) {
    o.parallel.dp = replicas;
    o.numerics.replicas = groups;
    o.train.batch = batch;
    o.train.micro_batch = micro_batch;
  });
}

TEST(Replicas, RefuseABatchThatTheyDoNotDivideAndNameTheNearest) {
  EXPECT_EQ(refused(4, 0, 10),
            "train.batch = 10 is not a multiple of train.micro_batch = 1 times parallel.dp = 4; use 8 or 12");
  EXPECT_EQ(refused(4, 0, 10, 3),
            "train.batch = 10 is not a multiple of train.micro_batch = 3 times parallel.dp = 4; use 12");
  EXPECT_EQ(refused(2, 8, 20),
            "train.batch = 20 is not a multiple of train.micro_batch = 1 times numerics.replicas = 8; use 16 "
            "or 24");
  EXPECT_EQ(refused(1, 1, 7, 2), "train.batch = 7 is not a multiple of train.micro_batch = 2; use 6 or 8");
  EXPECT_EQ(
      refused(65536, 0, 8, 1'000'000),
      "train.batch = 8 is not a multiple of train.micro_batch = 1000000 times parallel.dp = 65536, which is "
      "more than a step may have; use fewer of both");
}

TEST(Replicas, RefuseGroupsThatMakeNoTreeAndNameTheNearest) {
  EXPECT_EQ(refused(2, 3, 12),
            "numerics.replicas = 3 is not a multiple of parallel.dp = 2; use numerics.replicas = 2 or 4, or "
            "parallel.dp = 1 or 3");
  EXPECT_EQ(refused(8, 4, 8),
            "numerics.replicas = 4 is not a multiple of parallel.dp = 8; use numerics.replicas = 8, or "
            "parallel.dp = 4");
  EXPECT_EQ(
      refused(2, 6, 12),
      "numerics.replicas = 6 is 3 times parallel.dp = 2; groups of the batch are added in a binary tree, "
      "so that must be a power of two; use numerics.replicas = 4 or 8, or parallel.dp = 1 or 3");
  EXPECT_EQ(
      refused(3, 65535, 65535),
      "numerics.replicas = 65535 is 21845 times parallel.dp = 3; groups of the batch are added in a "
      "binary tree, so that must be a power of two; use numerics.replicas = 49152, or parallel.dp = 1 or "
      "65535");
}

// What is refused is what has no tree; the alternatives of every refusal are legal.
TEST(Replicas, TakeEveryNumberOfGroupsThatIsAPowerOfTwoTimesTheirs) {
  for (std::int64_t replicas = 1; replicas <= 12; ++replicas) {
    for (std::int64_t groups = 1; groups <= 24; ++groups) {
      bool legal = replicas == 1;
      for (std::int64_t count = replicas; count <= groups; count *= 2) legal = legal || count == groups;
      EXPECT_EQ(refused(replicas, groups, 24 * groups).empty(), legal) << groups << " on " << replicas;
    }
  }
}

TEST(Replicas, OfContextRanksNeedAPowerOfTwoOfGroups) {
  const auto refused_context = [](std::int64_t replicas, std::int64_t groups) {
    return refusal([&](Options& o) {
      o.parallel.dp = replicas;
      o.parallel.cp = 2;
      o.numerics.replicas = groups;
      o.train.batch = 24;
    });
  };
  EXPECT_EQ(
      refused_context(1, 3),
      "numerics.replicas = 3 with parallel.dp = 1 and parallel.cp = 2: ranks of a context are added in the "
      "same binary tree, so it must be a power of two; use parallel.dp = 3");
  EXPECT_EQ(refused_context(3, 3), "");
  EXPECT_EQ(refused_context(1, 4), "");
}

std::string refused_share(std::int64_t replicas, std::int64_t shard_group, std::int64_t context = 1) {
  return refusal([&](Options& o) {
    o.parallel.dp = replicas;
    o.parallel.cp = context;
    o.parallel.shard_group = shard_group;
    o.train.batch = 24;
  });
}

TEST(Replicas, RefuseShardGroupsThatDoNotDivideThemAndNameTheNearest) {
  const std::string what = " is neither a power of two that divides the ";
  EXPECT_EQ(refused_share(8, 3),
            "parallel.shard_group = 3" + what + "8 replicas (parallel.dp · cp) nor all of them; use 2 or 4");
  EXPECT_EQ(refused_share(6, 3),
            "parallel.shard_group = 3" + what + "6 replicas (parallel.dp · cp) nor all of them; use 2 or 6");
  EXPECT_EQ(refused_share(4, 16),
            "parallel.shard_group = 16" + what + "4 replicas (parallel.dp · cp) nor all of them; use 4");
  EXPECT_EQ(refused_share(1, 2),
            "parallel.shard_group = 2" + what + "1 replicas (parallel.dp · cp) nor all of them; use 1");
  EXPECT_EQ(refused_share(3, 6, 2), "");
  EXPECT_EQ(refused_share(3, 2, 2), "");
  EXPECT_EQ(refused_share(6, 6), "");
  EXPECT_EQ(refused_share(6, 1), "");
}

std::string refused_text(const std::string& key, const std::string& value) {
  const Scratch scratch;
  scratch.write("run.toml", "[data]\ntext = \"corpus.txt\"\n");
  const std::vector<std::string> words{"--" + key, value};
  return failure<InputError>([&] { read_options(scratch / "run.toml", words); });
}

TEST(Replicas, AreNumbersFromOneOrAuto) {
  for (const char* key : {"parallel.dp", "parallel.shard_group", "numerics.replicas"}) {
    for (const char* value : {"0", "-1", "65537", "1.5", "many"}) {
      const std::string text = refused_text(key, value);
      EXPECT_NE(text.find(key), std::string::npos) << text;
      EXPECT_NE(text.find("65536"), std::string::npos) << key << " " << value << ": " << text;
    }
    EXPECT_EQ(refused_text(key, "auto").empty(), std::string(key) == "parallel.dp");
  }
  const std::string text = refused_text("parallel.shard", "moments");
  for (const char* legal : {"off", "optimizer", "weights", "auto"})
    EXPECT_NE(text.find(legal), std::string::npos) << text;
}

std::int64_t fitted(std::int64_t groups, std::int64_t batch, std::optional<std::int64_t> ranks,
                    std::int64_t expert_ranks = 1, std::int64_t shard_group = 0) {
  Options options = changed([&](Options& o) {
    o.parallel.dp = 0;
    o.parallel.ep = expert_ranks;
    o.parallel.shard_group = shard_group;
    o.numerics.replicas = groups;
    o.train.batch = batch;
  });
  fit_replicas(options, ranks);
  return options.parallel.dp;
}

// Two devices each.
TEST(Replicas, AreAsManyAsGroupsAndRanksAllow) {
  EXPECT_EQ(fitted(4, 8, 2), 1);
  EXPECT_EQ(fitted(4, 8, 4), 2);
  EXPECT_EQ(fitted(4, 8, 7), 2);
  EXPECT_EQ(fitted(4, 8, 8), 4);
  EXPECT_EQ(fitted(4, 8, 100), 4);
  EXPECT_EQ(fitted(4, 8, 1), 1) << "too few ranks: check_ranks refuses";
  EXPECT_EQ(fitted(0, 12, 10), 4) << "the batch alone";
  EXPECT_EQ(fitted(6, 12, 8), 3);
  EXPECT_EQ(fitted(4, 8, {}), 4);
  EXPECT_EQ(fitted(0, 8, {}), 1);
}

// Two devices each, of ranks for six.
TEST(Replicas, AreAsManyAsExpertRanksAndShardGroupsDivide) {
  EXPECT_EQ(fitted(0, 12, 12), 6);
  EXPECT_EQ(fitted(0, 12, 12, 4), 4);
  EXPECT_EQ(fitted(8, 8, 12, 2), 4);
  EXPECT_EQ(fitted(0, 12, 12, 1, 4), 4);
  EXPECT_EQ(fitted(0, 12, 12, 1, 3), 3) << "all of them, since 3 is no power of two";
  EXPECT_EQ(fitted(0, 12, 12, 1, 2), 6);
  EXPECT_EQ(fitted(0, 12, 12, 5), 6) << "none divides: the mesh is refused";
}

TEST(Replicas, AreHeldByEnoughRanks) {
  const auto held = [](std::int64_t ranks, std::int64_t context, std::int64_t expert_ranks = 1) {
    return holds_replicas(changed([&](Options& o) {
                            o.parallel.dp = 0;
                            o.parallel.cp = context;
                            o.parallel.ep = expert_ranks;
                            o.numerics.replicas = 4;
                          }),
                          ranks);
  };
  EXPECT_FALSE(held(1, 1));
  EXPECT_TRUE(held(2, 1));
  EXPECT_FALSE(held(3, 2));
  EXPECT_TRUE(held(4, 2));
  EXPECT_FALSE(held(7, 1, 4)) << "two devices each: three replicas, of which none are a multiple of 4";
  EXPECT_TRUE(held(8, 1, 4));
}

std::string note(const std::string& schedule, std::int64_t chunks, const char* shard = "weights",
                 std::int64_t replicas = 2) {
  return resolve(changed([&](Options& o) {
           o.parallel.dp = replicas;
           o.parallel.shard = shard;
           o.schedule.name = schedule;
           o.schedule.chunks = chunks;
         }))
      .note(Topic::Gathers);
}

// Of m = 4 micro-batches on p = 2 devices with v = 4 stages each: two stages are there at a time, so the
// interleaved order of rows of p micro-batches gathers every stage again and again.
TEST(Replicas, SayWhatBreadthFirstSavesWhereWeightsAreGatheredMoreThanTwice) {
  const std::string told = note("interleaved", 4);
  const std::string begin = "schedule.name = \"interleaved\" gathers the weights of a stage up to ";
  ASSERT_EQ(told.find(begin), 0u) << told;
  EXPECT_GT(std::stoi(told.substr(begin.size())), 2) << told;
  EXPECT_NE(told.find(" times a step; with schedule.name = \"breadth-first\" it would be 2"),
            std::string::npos)
      << told;
  EXPECT_EQ(note("breadth-first", 4), "");
  EXPECT_EQ(note("interleaved", 4, "optimizer"), "");
  EXPECT_EQ(note("interleaved", 4, "weights", 1), "");
  EXPECT_EQ(note("interleaved", 2), "") << "both stages of a device are there all the time";
}

}  // namespace
}  // namespace penstock::run
