// SPDX-License-Identifier: Apache-2.0
#include "train/trainable.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "failure.h"
#include "run/resolve/resolve.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"

namespace penstock::train {
namespace {

run::Run resolved(const std::function<void(run::Options&)>& change) {
  run::Options options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  change(options);
  return run::resolve(options);
}

TEST(Trainable, NamesTheFileWhoseScheduleKeepsTwoCopiesOfTheParameters) {
  const Scratch scratch;
  scratch.write("two.csv", schedule::to_csv(schedule::generate("dualpipe", schedule::request(2, 8, 1, 0))));
  const run::Run run = resolved([&](run::Options& options) { options.schedule.file = scratch / "two.csv"; });
  const std::string text = failure<InputError>([&] { require_trainable(run); });
  EXPECT_TRUE(text.starts_with("schedule.file = \"" + (scratch / "two.csv") + "\" keeps two copies")) << text;
}

TEST(Trainable, TakesEveryAxisOfTheMeshAndExperts) {
  EXPECT_NO_THROW(require_trainable(resolved([](run::Options&) {})));
  EXPECT_NO_THROW(require_trainable(resolved([](run::Options& o) { o.parallel.tp = o.parallel.cp = 2; })));
  EXPECT_NO_THROW(require_trainable(resolved([](run::Options& o) {
    o.model.shape.experts = 4;
    o.model.shape.head_norms = true;
    o.parallel.dp = o.parallel.ep = 2;
  })));
}

// The load of a whole step is known before its first backward, or not.
TEST(Trainable, BalancesOverAStepWhereAllForwardsComeFirst) {
  const auto refusal = [](const char* schedule, std::int64_t batch) {
    return failure<InputError>([&] {
      require_trainable(resolved([&](run::Options& o) {
        o.model.shape.experts = 4;
        o.moe = {.balance_coefficient = 0.1, .balance_over = "step"};
        o.schedule.name = schedule;
        o.parallel.pp = 2;
        o.train.batch = batch;
      }));
    });
  };
  EXPECT_TRUE(refusal("1f1b", 8).starts_with("moe.balance_over = \"step\" needs all forwards"))
      << refusal("1f1b", 8);
  EXPECT_EQ(refusal("gpipe", 8), "");
  EXPECT_EQ(refusal("slimpipe", 1), "");
}

std::string refused_tensor(std::int64_t ranks, std::int64_t shards, const char* exchange, Tokens seq_len) {
  return failure<InputError>([&] {
    require_trainable(resolved([&](run::Options& o) {
      o.parallel.tp = ranks;
      o.numerics.tensor = shards;
      o.schedule.exchange = exchange;
      o.data.seq_len = seq_len;
      o.schedule.slices = 8;
    }));
  });
}

TEST(Trainable, ExchangesContextWithOneLogicalShardOnARank) {
  EXPECT_EQ(refused_tensor(1, 2, "levelled", 1024),
            "schedule.exchange = \"levelled\" needs one logical shard on each tensor-parallel rank; "
            "numerics.tensor = 2 over parallel.tp = 1 makes 2: use numerics.tensor = 1, or "
            "schedule.exchange = \"off\"");
  EXPECT_EQ(refused_tensor(2, 2, "levelled", 1024), "");
  EXPECT_EQ(refused_tensor(1, 2, "off", 1024), "");
}

TEST(Trainable, GathersNoKeysWhereContextIsExchanged) {
  const std::string refusal = failure<InputError>([] {
    require_trainable(resolved([](run::Options& o) {
      o.parallel.cp = 2;
      o.parallel.cp_mode = "gather";
      o.schedule.exchange = "levelled";
    }));
  });
  EXPECT_NE(refusal.find("use cp_mode = \"query\" or \"heads\""), std::string::npos) << refusal;
}

TEST(Trainable, NeedsNoTokenOfEverySliceForEveryLogicalShard) {
  EXPECT_EQ(refused_tensor(2, 4, "off", 24), "");
}

}  // namespace
}  // namespace penstock::train
