// SPDX-License-Identifier: Apache-2.0
// Slices of a step whose micro-batches differ in length.
#include <gtest/gtest.h>

#include "model/slices.h"
#include "run/resolve/resolve.h"
#include "run/step_plan.h"

namespace penstock::run {
namespace {

run::Run run_of_slice_tokens() {
  Options options;
  options.model.shape = {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256};
  options.data.megatron = {"no file"};
  options.data.packing = "best_fit";
  options.data.seq_len = 1024;
  options.parallel.pp = 2;
  options.train.batch = 2;
  options.schedule.name = "slimpipe";
  options.schedule.chunks = 1;
  options.schedule.slice_unit = 128;
  options.schedule.slice_tokens = 256;
  options.schedule.exchange = "off";
  return resolve(options);
}

// Of two micro-batches, one sequence each.
Run step_of(Tokens longest, Tokens shortest) {
  return planned(run_of_slice_tokens(),
                 {.documents = {model::Documents{{longest}}, model::Documents{{shortest}}},
                  .fewest = {shortest, shortest},
                  .most = {longest, longest}});
}

TEST(StepPlan, AShortSequenceLeavesTheSlicesOfTheLongestAsTheyAre) {
  const auto step = step_of(1024, 50);
  EXPECT_EQ(step.schedule.slices, (std::vector<int>{4, 4}));
  EXPECT_EQ(step.slices[0], model::cut_into_slices(1024, 4, 128));
  EXPECT_EQ(step.slices[1], model::cut_into_slices(50, 4, 12));
}

TEST(StepPlan, FewerTokensThanSlicesAreASliceEach) {
  const auto step = step_of(1024, 3);
  EXPECT_EQ(step.schedule.slices, (std::vector<int>{3, 3}));
  EXPECT_EQ(step.slices[1], model::cut_into_slices(3, 3));
}

}  // namespace
}  // namespace penstock::run
