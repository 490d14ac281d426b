// SPDX-License-Identifier: Apache-2.0
#include "run/resolve/choose.h"

#include <gtest/gtest.h>

#include "changed.h"
#include "run/memory.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"

namespace penstock::run {
namespace {

TEST(Choose, ExchangesOnlyWhereDevicesKeepStepAndHaveAsManyLayers) {
  const auto with = [](auto change) {
    return refusal([&](Options& o) {
      o.schedule.exchange = "levelled";
      o.parallel.pp = 2;
      change(o);
    });
  };
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_EQ(
      with([](auto& o) { o.schedule.name = "seq1f1b"; }),
      "schedule.exchange = \"levelled\" needs a schedule in whose slots all devices run forwards together, "
      "then backwards together; schedule.name = \"seq1f1b\" has no such slots: use \"slimpipe\", or "
      "schedule.exchange = \"off\"");
  EXPECT_EQ(with([](auto& o) { o.model.shape.layers = 7; }),
            "schedule.exchange = \"levelled\" needs the same number of layers on every stage; model.layers = "
            "7 over 2 stages makes 4, 3: use model.layers = 6 or 8, or schedule.exchange = \"off\"");
  EXPECT_EQ(with([](auto& o) {
              o.model.shape.layers = 8;
              o.parallel.layers.list = {5, 3};
            }),
            "schedule.exchange = \"levelled\" needs the same number of layers on every stage; model.layers = "
            "8 over 2 stages makes 5, 3: leave parallel.layers out, or set schedule.exchange = \"off\"");
}

// Where it cannot be it is off, and the reason is told; what was chosen resolves to itself.
TEST(Choose, ChoosesAnExchangeAndSaysWhy) {
  const auto chosen = [](auto change) {
    return resolve(changed([&](Options& o) {
      o.schedule.exchange = "auto";
      change(o);
    }));
  };
  const run::Run uneven = chosen([](auto& o) { o.model.shape.layers = 7; });
  EXPECT_EQ(uneven.options.schedule.exchange, "off");
  EXPECT_NE(uneven.note(Topic::Exchange).find("the same number of layers on every stage"), std::string::npos);
  const run::Run alone = chosen([](auto& o) { o.parallel.pp = 1; });
  EXPECT_EQ(alone.note(Topic::Exchange), "off: there is one device");
  const run::Run brief = chosen([](auto& o) { o.data.seq_len = 64; });
  EXPECT_EQ(brief.options.schedule.exchange, "off") << brief.note(Topic::Exchange);
  const run::Run lengthy = chosen([](auto& o) {
    o.data.seq_len = 65536;
    o.schedule.slices = 16;
  });
  EXPECT_NE(lengthy.options.schedule.exchange, "off") << lengthy.note(Topic::Exchange);
  EXPECT_NE(lengthy.note(Topic::Exchange).find("the fastest: "), std::string::npos)
      << lengthy.note(Topic::Exchange);
  EXPECT_EQ(resolve(lengthy.options).options.schedule.exchange, lengthy.options.schedule.exchange);
}

// So that no machine is measured for a choice that nobody has.
TEST(Choose, TakesSpeedsForAnExchangeOnlyWhereThereMayBeOne) {
  const auto by_speed = [](auto change) {
    return chooses_by_speed(changed([&](Options& o) {
      o.schedule.exchange = "auto";
      change(o);
    }));
  };
  EXPECT_TRUE(by_speed([](auto&) {}));
  EXPECT_FALSE(by_speed([](auto& o) { o.parallel.pp = 1; }));
  EXPECT_FALSE(by_speed([](auto& o) { o.model.shape.layers = 7; }));
  EXPECT_FALSE(by_speed([](auto& o) { o.schedule.name = "zb-h1"; }));
  EXPECT_FALSE(by_speed([](auto& o) { o.schedule.slices = 100000; })) << "which is refused";
}

Bytes most_of_run(const run::Run& run) {
  Bytes most = 0;
  for (const model::MemoryPeaks& device : run.predicted) most = std::max(most, device.total());
  return most;
}

// The policy decides how often a backward attends, and messages of exchange take room.
TEST(Choose, ChoosesAnExchangeForThePolicyAndTheLimit) {
  const auto lengthy = [](const char* exchange, const char* policy, const std::string& limit) {
    return resolve(changed([&](Options& o) {
      o.data.seq_len = 65536;
      o.schedule.slices = 16;
      o.schedule.exchange = exchange;
      o.memory.policy = policy;
      o.memory.limit = limit;
    }));
  };
  const Bytes without = most_of_run(lengthy("off", "full", ""));
  const run::Run wide = lengthy("auto", "full", "");
  ASSERT_GT(most_of_run(wide), without);
  const run::Run tight = lengthy("auto", "full", std::to_string(without) + " B");
  EXPECT_EQ(tight.options.schedule.exchange, "off");
  EXPECT_NE(tight.note(Topic::Exchange).find("does not fit in memory.limit"), std::string::npos)
      << tight.note(Topic::Exchange);
  const run::Run both = lengthy("auto", "auto", std::to_string(most_of_run(wide)) + " B");
  EXPECT_EQ(both.options.memory.policy, "full");
  EXPECT_EQ(both.note(Topic::Exchange), wide.note(Topic::Exchange));
}

// What attention's kernels take depends on it, so a run that fits with one thread need not with eight: one
// whose peak is in attention, since the feed-forward is narrow.
TEST(Choose, ChoosesAPolicyForTheThreadsThatTheRunWillHave) {
  const auto with = [](const char* policy, const std::string& limit, int threads) {
    auto options = changed([&](Options& o) {
      o.data.seq_len = 4096;
      o.model.shape.ffn = o.model.shape.hidden / 2;
      o.memory.policy = policy;
      o.memory.limit = limit;
    });
    return resolve(options, {.threads = threads});
  };
  const Bytes one = most_of_run(with("none", "", 1)), eight = most_of_run(with("none", "", 8));
  ASSERT_GT(eight, one);
  EXPECT_EQ(with("auto", std::to_string(one) + " B", 1).options.memory.policy, "none");
  EXPECT_EQ(with("auto", std::to_string(one) + " B", 8).options.memory.policy, "balanced");
}

TEST(Choose, ShardsTheVocabularyOnlyWhereDevicesKeepStep) {
  const auto with = [](auto change) {
    return refusal([&](Options& o) {
      o.schedule.vocabulary_parallel = true;
      change(o);
    });
  };
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_EQ(with([](auto& o) { o.schedule.chunks = 2; }), "");
  EXPECT_EQ(with([](auto& o) { o.schedule.name = "seq1f1b"; }),
            "schedule.vocabulary_parallel = true is offered for \"slimpipe\", not for schedule.name = "
            "\"seq1f1b\": use \"slimpipe\", or a schedule.file in whose slots all devices run forwards "
            "together, then backwards together");
  for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-v", "interleaved", "dualpipe-v"}) {
    EXPECT_NE(with([&](auto& o) { o.schedule.name = name; }).find("use \"slimpipe\""), std::string::npos)
        << name;
  }
  EXPECT_EQ(
      with([](auto& o) {
        o.model.shape.vocab = 3;
        o.parallel.pp = 4;
      }),
      "schedule.vocabulary_parallel = true needs as many tokens as devices; model.vocab = 3 is less than "
      "parallel.pp = 4: use pp = 3 or less");
}

TEST(Choose, ShardsTheVocabularyOfAScheduleFileThatKeepsStep) {
  const Scratch scratch;
  for (const char* name : {"slimpipe", "seq1f1b"}) {
    scratch.write("my.csv", schedule::to_csv(schedule::generate(name, schedule::request(2, 8, 4))));
    const std::string refused = refusal([&](Options& o) {
      o.schedule.file = scratch / "my.csv";
      o.schedule.vocabulary_parallel = true;
    });
    EXPECT_EQ(refused.empty(), std::string(name) == "slimpipe") << refused;
  }
}

// Sharded weights only where nothing less fits, and only where nothing is given.
TEST(Choose, SharesStatesAndPassesWeightsOnWhereOnlyThatFits) {
  const auto with = [](const std::string& limit, const std::string& shard) {
    return resolve(changed([&](Options& o) {
      o.model.shape = {.layers = 16, .hidden = 128, .ffn = 352, .heads = 4, .kv_heads = 4};
      o.data.seq_len = 32;
      o.parallel.dp = 4;
      o.parallel.shard = shard;
      o.schedule.name = "breadth-first";
      o.schedule.chunks = 4;
      o.memory.policy = "auto";
      o.memory.limit = limit;
    }));
  };
  const run::Run roomy = with("1 GiB", "auto");
  EXPECT_EQ(roomy.options.parallel.shard, "optimizer");
  EXPECT_EQ(roomy.replica_sharding, schedule::ReplicaSharding::Optimizer);
  const run::Run full = resolve([&] {
    Options options = roomy.options;
    options.memory.policy = "full";
    return options;
  }());
  const std::string less = std::to_string(full.predicted[fullest_device(full.predicted)].total() - 1) + " B";
  const run::Run tight = with(less, "auto");
  EXPECT_EQ(tight.options.parallel.shard, "weights");
  EXPECT_TRUE(fits(tight));
  EXPECT_NE(tight.note(Topic::Memory).find("shard weights"), std::string::npos) << tight.note(Topic::Memory);
  EXPECT_THROW(with(less, "optimizer"), NoAnswer);
  EXPECT_EQ(resolve(changed([](auto&) {})).replica_sharding, schedule::ReplicaSharding::None)
      << "nothing to share";
}

}  // namespace
}  // namespace penstock::run
