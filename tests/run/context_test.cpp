// SPDX-License-Identifier: Apache-2.0
// Context parallelism in a run file: what is refused, with the nearest legal values, and what "auto" takes.
#include "run/context.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "failure.h"
#include "run/resolve/resolve.h"

namespace penstock::testing {
namespace {

run::Options context_options(std::int64_t ranks, const char* mode) {
  run::Options options;
  options.model.shape = {.layers = 4, .hidden = 96, .ffn = 64, .heads = 12, .kv_heads = 3};
  options.data.text = "corpus.txt";
  options.data.seq_len = 96;
  options.parallel.cp = ranks;
  options.parallel.cp_mode = mode;
  return options;
}

std::string context_refused(const run::Options& options) {
  return failure<InputError>([&] { run::resolve(options); });
}

TEST(Context, NamesTheNearestRanksThatShareOutTheHeads) {
  EXPECT_EQ(context_refused(context_options(4, "heads")),
            "parallel.cp_mode = \"heads\": parallel.cp = 4 ranks cannot split the 12 query and 3 key heads; "
            "use cp = 3 or 6, or cp_mode = \"query\"");
  EXPECT_EQ(context_refused(context_options(3, "heads")), "");
  EXPECT_EQ(
      context_refused(context_options(4, "mixed")),
      "parallel.cp_mode = \"mixed\": parallel.cp = 4 has no divisor but itself that splits the 12 query "
      "and 3 key heads; use cp_mode = \"query\"");
  EXPECT_EQ(context_refused(context_options(6, "mixed")), "");
}

TEST(Context, NeedsPiecesOfWholeTokensAndRaisesTheUnitOfSlices) {
  run::Options options = context_options(2, "query");
  options.data.seq_len = 98;
  EXPECT_EQ(context_refused(options),
            "data.seq_len = 98 is not a multiple of the 2 · parallel.cp = 4 pieces of the context ranks; use "
            "96 or 100");
  options = context_options(2, "query");
  options.schedule.slices = 5;
  options.schedule.slice_unit = 6;
  const run::Run run = run::resolve(options);
  EXPECT_EQ(run.options.schedule.slice_unit, 12);
  EXPECT_EQ(run.note(run::Topic::Context),
            "slices are cut at multiples of 12 tokens, since each has 2 · parallel.cp pieces");
  for (const auto& slice : run.slices.front()) EXPECT_EQ(slice.length % 12, 0);
}

std::vector<std::string> modes_of(const run::Options& options) {
  return run::context_modes(run::resolve(options).options);
}

TEST(Context, ChoosesAmongTheModesThatTheHeadsAllow) {
  using Modes = std::vector<std::string>;
  EXPECT_EQ(modes_of(context_options(3, "auto")), (Modes{"heads", "query", "gather"}));
  EXPECT_EQ(modes_of(context_options(6, "auto")), (Modes{"heads", "mixed", "query", "gather"}));
  EXPECT_EQ(modes_of(context_options(8, "auto")), (Modes{"query", "gather"}));
  run::Options options = context_options(3, "auto");
  options.parallel.tp = 3;
  EXPECT_EQ(modes_of(options), (Modes{"query", "gather"}));  // four heads on each of three shards
  options = context_options(3, "auto");
  options.schedule = {.name = "slimpipe", .slices = 4, .exchange = "paired"};
  options.parallel.pp = 2;
  EXPECT_EQ(modes_of(options), (Modes{"heads", "query"}));  // whole keys do not go with exchange
  options.data.text.clear();
  options.data.megatron = {"no file"};
  options.data.mask = "documents";
  options.model.shape.vocab = 259;
  EXPECT_EQ(modes_of(options), (Modes{"heads"}));  // nor, with documents, keys in two runs
}

}  // namespace
}  // namespace penstock::testing
