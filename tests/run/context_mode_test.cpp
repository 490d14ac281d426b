// SPDX-License-Identifier: Apache-2.0
// The way in which a context group forms attention, where a run leaves it open.
#include "run/context.h"

#include <gtest/gtest.h>

#include "run/resolve.h"

namespace penstock::run {
namespace {

Run resolved(std::int64_t ranks, std::int64_t heads, std::int64_t kv_heads,
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

TEST(ContextMode, SharesOutHeadsAsFarAsTheyLastAndSaysWhatEachModeMoves) {
  const run::Run heads = resolved(4, 8, 2);
  EXPECT_EQ(heads.options.parallel.cp_mode, "heads");
  EXPECT_EQ(
      heads.context_note,
      "heads: 4 ranks share out the 8 query and 2 key heads; a rank receives for a layer and slice: "
      "heads 10.1 KiB, mixed 21.4 KiB, query 47.2 KiB, gather 10.1 KiB, which keeps all ranks' keys and "
      "values");
  EXPECT_EQ(resolved(6, 2, 2).options.parallel.cp_mode, "mixed");
  EXPECT_EQ(resolved(3, 8, 2).context_note.find("query: 3 ranks cannot share out the 8 query"), 0u);
}

TEST(ContextMode, NeedsNoNoteWhereItIsGivenOrAlone) {
  EXPECT_EQ(resolved(4, 8, 2, "query").context_note, "");
  EXPECT_EQ(resolved(1, 8, 2).context_note, "");
}

}  // namespace
}  // namespace penstock::run
