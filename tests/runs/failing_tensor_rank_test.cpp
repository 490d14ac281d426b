// SPDX-License-Identifier: Apache-2.0
// A rank of a tensor group that is killed or stuck inside a layer: the others end soon with exit code 3 and
// name the rank and the collective in which they noticed it.
#include <gtest/gtest.h>

#include "runs/endless_run.h"

namespace penstock::testing {
namespace {

// Steps that are layers for the most part: a small vocabulary, and many of them.
Arguments tensor_settings(int devices) {
  return {"--parallel.tp",  "2",   "--parallel.pp",  std::to_string(devices),
          "--model.hidden", "128", "--model.ffn",    "352",
          "--model.layers", "16",  "--data.seq_len", "256"};
}

// Of layers, and seldom of what comes after them.
const Arguments kCollectives{"gather of a tensor group's rows", "scatter of a tensor group's sums",
                             "the output layer of a slice", "over tensor ranks"};

TEST(FailingTensorRank, ThatIsKilledIsNamedWithTheCollective) {
  for (const int devices : {1, 2}) {
    SCOPED_TRACE(std::to_string(devices) + " devices");
    EndlessRun run(2 * devices, tensor_settings(devices));
    const std::size_t ranks = 2 * static_cast<std::size_t>(devices);
    ASSERT_EQ(run.ranks().size(), ranks);
    run.stop(ranks - 1);
    std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSlowness));
    kill(run.ranks().back(), SIGKILL);
    const Ending ending = run.end();
    expect_ended_by_the_rest(ending, run);
    EXPECT_TRUE(is_named(ending, ranks - 1, kCollectives)) << ending.err;
  }
}

TEST(FailingTensorRank, ThatIsStuckIsNamedWithTheCollectiveWhenTheTimeIsUp) {
  constexpr Seconds kTimeout = 2;
  Arguments settings = tensor_settings(1);
  settings.insert(settings.end(), {"--train.timeout", "2"});
  EndlessRun run(2, settings);
  ASSERT_EQ(run.ranks().size(), 2u);
  run.stop(1);
  const Ending ending = run.end();
  EXPECT_EQ(ending.exit_code, 3) << ending.err;
  EXPECT_LT(ending.seconds, kTimeout + kPatience);
  EXPECT_TRUE(is_named(ending, 1, kCollectives)) << ending.err;
  EXPECT_EQ(left_running(run.ranks()), std::vector<int>{});
}

}  // namespace
}  // namespace penstock::testing
