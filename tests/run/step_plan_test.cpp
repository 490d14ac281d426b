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

TEST(StepPlan, AShortSequenceLeavesTheSlicesOfTheLongestAsTheyAre) {
  const run::Run run = run_of_slice_tokens();
  const model::Documents longest{{1024}}, shortest{{50}};
  const run::Run step =
      planned(run, {.documents = {longest, shortest}, .fewest = {50, 50}, .most = {1024, 1024}});
  EXPECT_EQ(step.schedule.slices, (std::vector<int>{4, 4}));
  EXPECT_EQ(step.slices[0], model::cut_into_slices(1024, 4, 128));
  EXPECT_EQ(step.slices[1], model::cut_into_slices(50, 4, 12));
}

TEST(StepPlan, FewerTokensThanSlicesAreASliceEach) {
  const run::Run run = run_of_slice_tokens();
  const model::Documents longest{{1024}}, shortest{{3}};
  const run::Run step =
      planned(run, {.documents = {longest, shortest}, .fewest = {3, 3}, .most = {1024, 1024}});
  EXPECT_EQ(step.schedule.slices, (std::vector<int>{3, 3}));
  EXPECT_EQ(step.slices[1], model::cut_into_slices(3, 3));
}

}  // namespace
}  // namespace penstock::run
