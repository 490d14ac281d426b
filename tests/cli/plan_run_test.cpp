// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_run.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "cli/resolve.h"
#include "failure.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

// Eight sequences of 1,024 tokens in eight slices over two devices, changed by one line of a test.
ResolvedRun resolved(const std::function<void(train::RunOptions&)>& change) {
  train::RunOptions options;
  options.data.text = "corpus.txt";
  options.parallel.pp = 2;
  change(options);
  return resolve(options);
}

Bytes predicted_logits(Tokens tile, Tokens micro_batch) {
  const ResolvedRun run = resolved([&](train::RunOptions& options) {
    options.train.loss_tile_tokens = tile;
    options.train.micro_batch = micro_batch;
  });
  return plan_run(run).predicted.back().logits;
}

TEST(PlanRun, PredictsNoTileOfLogitsWithMoreRowsThanASliceHas) {
  EXPECT_LT(predicted_logits(127, 1), predicted_logits(128, 1));
  EXPECT_EQ(predicted_logits(128, 1), predicted_logits(512, 1));
  EXPECT_LT(predicted_logits(255, 2), predicted_logits(256, 2));
  EXPECT_EQ(predicted_logits(256, 2), predicted_logits(1 << 20, 2));
}

TEST(PlanRun, NamesTheFileWhoseScheduleKeepsTwoCopiesOfTheParameters) {
  const Scratch scratch;
  scratch.write("two.csv", schedule::to_csv(schedule::generate("dualpipe", schedule::request(2, 8, 1, 0))));
  const ResolvedRun run =
      resolved([&](train::RunOptions& options) { options.schedule.file = scratch / "two.csv"; });
  const std::string text = failure<InputError>([&] { plan_run(run); });
  EXPECT_TRUE(text.starts_with("schedule.file = \"" + (scratch / "two.csv") + "\" keeps two copies")) << text;
}

}  // namespace
}  // namespace penstock::cli
