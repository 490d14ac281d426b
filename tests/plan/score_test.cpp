// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <regex>

#include "base/error.h"
#include "reference.h"

namespace penstock::plan {
namespace {

TEST(ScoreMemory, PeaksOfTheAtc24RunsAreMetWithoutAFittedConstant) {
  const Score result = score(reference_table("atc24_memory"), {});
  const ErrorStatistics errors = statistics_of(result);
  EXPECT_EQ(errors.count, 8u);
  EXPECT_LE(errors.mean, 0.005) << print_score(result);
  EXPECT_LE(errors.greatest, 0.015) << print_score(result);
  EXPECT_TRUE(
      std::regex_search(print_score(result), std::regex("\nrow +model .* predicted +published +error\n")))
      << print_score(result);
}

TEST(ScoreMemory, RunsThatRanOutOfMemoryArePredictedNotToFit) {
  const Score memory = score(reference_table("atc24_memory"), {});
  const Score time = score(reference_table("atc24_throughput"), reference_machines());
  EXPECT_EQ(memory.out_of_memory.size() + time.out_of_memory.size(), 6u);
  for (const auto& row : memory.out_of_memory) EXPECT_FALSE(row.predicted_to_fit) << row.setting;
  for (const auto& row : time.out_of_memory) EXPECT_FALSE(row.predicted_to_fit) << row.setting;
}

TEST(ScoreMemory, EveryPartOfEveryRowOfTheSlimpipePlannerAgrees) {
  const Score result = score(reference_table("slimpipe_planner"), {});
  EXPECT_EQ(result.figures.size(), 232u * 10);
  for (const ScoredFigure& figure : result.figures) {
    EXPECT_NEAR(figure.predicted, figure.published, 0.05)
        << figure.row + 1 << " " << figure.setting << " " << figure.quantity;
  }
}

TEST(ScoreMemory, ConventionsAreNamedForEverySourceFile) {
  const Score result = score(reference_table("slimpipe_planner"), {});
  const auto said = [&](const std::string& start, const std::string& end) {
    for (const std::string& note : result.notes) {
      if (note.starts_with(start) && note.find(end) != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(said("128-slimpipe-full-recompute.csv", "left out"));
  EXPECT_TRUE(said("256-slimpipe-full-recompute.csv", "counted"));
}

TEST(ScoreTime, PublishedThroughputOfAtc24IsMet) {
  const Score result = score(reference_table("atc24_throughput"), reference_machines());
  const ErrorStatistics errors = statistics_of(result);
  EXPECT_EQ(errors.count, 19u);
  EXPECT_LE(errors.mean, 0.015) << print_score(result);
  EXPECT_LE(errors.greatest, 0.04) << print_score(result);
  for (const auto& [model, correlation] : rank_correlations(result)) EXPECT_GE(correlation, 0.97) << model;
}

TEST(ScoreTime, CalculonsCasesAreMet) {
  const Score result = score(reference_table("calculon_cases"), reference_machines());
  EXPECT_LE(statistics_of(result).mean, 0.025) << print_score(result);
  EXPECT_LE(statistics_of(result).greatest, 0.05) << print_score(result);
}

TEST(ScoreTime, VtrainsMultiNodeRunsAreMet) {
  const Score result = score(reference_table("vtrain_multi_node"), reference_machines());
  const ErrorStatistics errors = statistics_of(result);
  EXPECT_LE(errors.median, 0.035) << print_score(result);
  EXPECT_LE(errors.p90, 0.12) << print_score(result);
  EXPECT_LE(errors.mean, 0.06) << print_score(result);
}

TEST(Score, AnUnknownHeaderIsRefusedAndSoIsACellThatIsNoNumber) {
  EXPECT_THROW(score(Table("a,b\n1,2\n", "x.csv"), {}), InputError);
  EXPECT_THROW(Table("a,b\n1\n", "x.csv"), InputError);
  EXPECT_THROW(Table("a,a\n1,2\n", "x.csv"), InputError);
  EXPECT_THROW(Table("", "x.csv"), InputError);
  const std::string header = read_source("bench/reference/atc24_memory.csv").substr(0, 200);
  const std::string row = "llama-65b,8192,256,256,1,2,two,8,8,2,no,0.30,1\n";
  EXPECT_THROW(score(Table(header.substr(0, header.find('\n') + 1) + row, "x.csv"), {}), InputError);
}

TEST(Score, RankCorrelationOfEqualOrdersIsOneAndOfOppositeOnesMinusOne) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 5, 9, 10}, {2, 3, 4, 50}), 1.0);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 5, 9}, {3, 2, 1}), -1.0);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 1, 2}, {1, 1, 2}), 1.0);
}

}  // namespace
}  // namespace penstock::plan
