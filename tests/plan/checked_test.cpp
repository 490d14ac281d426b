// SPDX-License-Identifier: Apache-2.0
#include "plan/published/checked.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "failure.h"
#include "reference.h"

namespace penstock::plan {
namespace {

CheckedRun run_of(const std::string& engine, const std::string& source, double error, int pipeline = 1) {
  CheckedRun run;
  run.engine = engine;
  run.source = source;
  run.family = "dense";
  run.configuration = source + std::to_string(error);
  run.mesh.data = 8;
  run.mesh.pipeline = pipeline;
  run.seq_len = 4096;
  run.unseen_configuration = error;
  run.unseen_source = 2 * error;
  return run;
}

std::vector<CheckedRun> kept_runs() {
  return read_checked(Table(read_source("engines/checked.csv"), "engines/checked.csv"));
}

TEST(Checked, AnEngineOfItsOwnGivesItsErrorsAndAnUnknownOneThoseOfUnseenSources) {
  std::vector<CheckedRun> runs;
  for (int i = -10; i <= 10; ++i) runs.push_back(run_of("one", "a", 0.01 * i));
  const auto own = interval_of(run_of("one", "b", 0), runs);
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->own_engine);
  EXPECT_EQ(own->runs, 21u);
  EXPECT_NEAR(own->low, 1 / 1.088, 0.01);  // 6 % of the way from 1/1.1
  EXPECT_NEAR(own->high, 1 / 0.912, 0.01);
  const auto other = interval_of(run_of("two", "b", 0), runs);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->own_engine);
  EXPECT_LT(other->low, own->low);
  EXPECT_GT(other->high, own->high);
  EXPECT_FALSE(interval_of(run_of("one", "b", 0), {}));
}

TEST(Checked, RunsOfALikeMeshCountFirst) {
  std::vector<CheckedRun> runs;
  for (int i = 0; i < 160; ++i) runs.push_back(run_of("one", "a", 0.01, 8));
  for (int i = 0; i < 160; ++i) runs.push_back(run_of("one", "a", -0.2, 1));
  const auto like = interval_of(run_of("one", "b", 0, 8), runs);
  ASSERT_TRUE(like);
  EXPECT_NEAR(like->high, 1 / 1.01, 1e-9);
  EXPECT_NEAR(like->low, 1 / 1.01, 1e-9);
}

TEST(Checked, WhatNothingPublishedHasIsTold) {
  const std::vector<CheckedRun> runs(20, run_of("one", "a", 0, 4));
  CheckedRun asked = run_of("one", "b", 0, 8);
  asked.seq_len = 8192;
  const Words words = outside_of(asked, runs);
  ASSERT_EQ(words.size(), 3u);  // 64 GPUs against 32 too
  EXPECT_EQ(words[0], "no published run of one has more pipeline ranks than 4 (here 8)");
  EXPECT_EQ(outside_of(run_of("two", "b", 0, 8), runs)[0],
            "no published run has more pipeline ranks than 4 (here 8)");
  EXPECT_TRUE(outside_of(run_of("one", "b", 0, 4), runs).empty());
  EXPECT_EQ(outside_of(run_of("two", "b", 0, 4), runs).size(), 1u);
}

TEST(Checked, TheKeptFileHasEveryPublishedRunAndItsIntervalsHoldAsManyAsTheySay) {
  const std::vector<CheckedRun> runs = kept_runs();
  EXPECT_EQ(runs.size(), 639u);
  const Coverage coverage = coverage_of(runs);
  EXPECT_GE(coverage.configurations, 0.75);
  EXPECT_LE(coverage.configurations, 0.88);
  EXPECT_GE(coverage.sources, 0.75);
  EXPECT_LE(coverage.sources, 0.88);
}

TEST(Checked, UnseenRunsAreMetAsTheAimsHaveIt) {
  std::vector<double> configurations, sources;
  for (const CheckedRun& run : kept_runs()) {
    configurations.push_back(std::abs(run.unseen_configuration));
    sources.push_back(std::abs(run.unseen_source));
  }
  EXPECT_LE(statistics_of(configurations).median, 0.05);
  EXPECT_LE(statistics_of(configurations).mean, 0.08);
  EXPECT_LE(statistics_of(configurations).p90, 0.18);
  EXPECT_LE(statistics_of(sources).median, 0.10);
}

TEST(Checked, ADamagedFileIsRefusedByRowAndColumn) {
  const std::string text = read_source("engines/checked.csv");
  const std::string header = text.substr(0, text.find('\n') + 1);
  const auto refusal = [&](const std::string& row) {
    return failure<InputError>([&] { read_checked(Table(header + row, "checked.csv")); });
  };
  EXPECT_EQ(refusal("nemo,dense,x,\"a, b\",1,2,1,4,1,0,8192,-0.01,-0.02\n"), "");
  EXPECT_NE(refusal("nemo,dense,x,a,1,2,1,four,1,0,8192,-0.01,-0.02\n").find("row 1, dp = \"four\""),
            std::string::npos);
  EXPECT_NE(refusal("nemo,dense,x,a,1,2,1,4,1,0,8192,-1,-0.02\n").find("unseen_configuration"),
            std::string::npos);
  EXPECT_NE(refusal("nemo,dense,x,\"a,1\n").find("without an end"), std::string::npos);
}

}  // namespace
}  // namespace penstock::plan
