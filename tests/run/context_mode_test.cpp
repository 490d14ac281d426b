// SPDX-License-Identifier: Apache-2.0
// The way in which a context group forms attention, where a run leaves it open.
#include "run/context.h"

#include <gtest/gtest.h>

#include "run/resolve/resolve.h"

namespace penstock::run {
namespace {

Run context_resolved(std::int64_t ranks, std::int64_t heads, std::int64_t kv_heads,
                     const std::string& mode = "auto") {
  Options options;
  options.model.shape = {.layers = 2, .hidden = 96, .ffn = 96, .heads = heads, .kv_heads = kv_heads};
  options.data.text = "no file";
  options.data.seq_len = 96;
  options.parallel.cp = ranks;
  options.parallel.cp_mode = mode;
  options.schedule.slices = 2;
  return resolve(options, {});
}

TEST(ContextMode, IsTheFirstWhereAllAreAsFastAndSaysWhatEachTakesAndMoves) {
  const run::Run heads = context_resolved(4, 8, 2);
  EXPECT_EQ(heads.options.parallel.cp_mode, "heads");
  for (const char* words :
       {"heads: ", " and 10.1 KiB, mixed ", " and 21.4 KiB, query ", " and 47.2 KiB, gather ",
        " and 10.1 KiB (a simulated step; what a rank receives for a layer and slice)"})
    EXPECT_NE(heads.note(Topic::Context).find(words), std::string::npos) << heads.note(Topic::Context);
  EXPECT_EQ(context_resolved(6, 2, 2).options.parallel.cp_mode, "mixed");
}

// Eight query heads share one key head, so its keys and values are little beside the queries.
Run with_one_key_head(double gigabytes_a_second, const std::string& limit = {}) {
  Machine machine;
  machine.hardware.node.link_gbps = machine.hardware.network.gbps_per_gpu = gigabytes_a_second;
  Options options;
  options.model.shape = {.layers = 8, .hidden = 128, .ffn = 96, .heads = 8, .kv_heads = 1};
  options.data.text = "no file";
  options.data.seq_len = 3 * 4096;
  options.parallel.cp = 3;
  options.schedule.slices = 16;
  options.memory.limit = limit;
  return resolve(options, machine);
}

TEST(ContextMode, DependsOnTheSpeedOfMessages) {
  const run::Run slow = with_one_key_head(0.01);
  EXPECT_EQ(slow.options.parallel.cp_mode, "gather") << slow.note(Topic::Context);
  EXPECT_EQ(slow.note(Topic::Context).find("gather: the fastest: query "), 0u) << slow.note(Topic::Context);
  EXPECT_EQ(with_one_key_head(1e6).options.parallel.cp_mode, "query");
}

TEST(ContextMode, KeepsWholeKeysOnlyWhereTheyFit) {
  const Bytes needed = with_one_key_head(1e6).predicted.front().total();  // with queries
  const run::Run limited = with_one_key_head(0.01, std::to_string(needed) + " B");
  EXPECT_EQ(limited.options.parallel.cp_mode, "query");
  EXPECT_NE(limited.note(Topic::Context).find("gather does not fit in memory.limit"), std::string::npos)
      << limited.note(Topic::Context);
}

TEST(ContextMode, NeedsNoNoteWhereItIsGivenOrAlone) {
  EXPECT_EQ(context_resolved(4, 8, 2, "query").note(Topic::Context), "");
  EXPECT_EQ(context_resolved(1, 8, 2).note(Topic::Context), "");
}

}  // namespace
}  // namespace penstock::run
