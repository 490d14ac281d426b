// SPDX-License-Identifier: Apache-2.0
// A run that is stopped and gone on with.
#pragma once

#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace penstock::testing {

class ResumedRun : public ::testing::Test {
 protected:
  void SetUp() override { scratch_.write("run.toml", small_run_file(scratch_)); }

  // Later words win, so `settings` may repeat a key. A constant learning rate lets more steps follow, and an
  // evaluation in each step leaves nothing that only the last one has.
  Arguments arguments(const std::string& directory, const Arguments& settings) const {
    Arguments all{"train",
                  scratch_ / "run.toml",
                  "--train.lr_schedule",
                  "constant",
                  "--train.checkpoint_every",
                  "2",
                  "--train.evaluate_every",
                  "1",
                  "--output.dir",
                  scratch_ / directory};
    all.insert(all.end(), settings.begin(), settings.end());
    return all;
  }

  Ending train(const std::string& directory, const Arguments& settings, int ranks = 2, bool mpirun = false) {
    const Arguments all = arguments(directory, settings);
    return run_program(mpirun ? with_mpirun(ranks, all) : with_threads(ranks, all));
  }

  void train_well(const std::string& directory, const Arguments& settings, int ranks = 2,
                  bool mpirun = false) {
    const Ending ending = train(directory, settings, ranks, mpirun);
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
    ASSERT_EQ(ending.complaints(), std::vector<std::string>{}) << ending.err;
  }

  void expect_same(const std::string& directory, const std::string& wanted) {
    const Left a = left_in(scratch_, directory), b = left_in(scratch_, wanted);
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_TRUE(a.weights == b.weights);
    EXPECT_FALSE(a.weights.empty());
  }

  Scratch scratch_;
};

}  // namespace penstock::testing
