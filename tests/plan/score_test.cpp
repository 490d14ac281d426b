// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "base/text.h"
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

// The reference table with the cell of a row (from 1) replaced, as "x.csv".
Table with_cell(const std::string& name, std::size_t row, const std::string& column,
                const std::string& cell) {
  const std::string text = read_source("bench/reference/" + name + ".csv");
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  const std::vector<std::string_view> header = split(lines[0], ',');
  std::vector<std::string> cells;
  for (const std::string_view one : split(lines[row], ',')) cells.emplace_back(one);
  cells[static_cast<std::size_t>(std::ranges::find(header, column) - header.begin())] = cell;
  lines[row] = join(cells, ",");
  return {join(lines, "\n"), "x.csv"};
}

// The reason of a row that is refused as bad input while all others are scored as ever; else empty.
std::string refusal_with(const std::string& name, const std::string& column, const std::string& cell) {
  const KnownMachines known = reference_machines();
  const Score whole = score(reference_table(name), known);
  const Score result = score(with_cell(name, 5, column, cell), known);
  if (result.refused.size() != 1 || result.refused[0].row != 4 || !result.refused[0].bad_input) return {};
  const auto others =
      std::ranges::count_if(whole.figures, [](const auto& figure) { return figure.row != 4; });
  if (result.figures.size() != static_cast<std::size_t>(others)) return {};
  return result.refused[0].reason;
}

TEST(Score, AnUnknownHeaderIsRefusedAndSoIsATableOfOtherColumns) {
  EXPECT_THROW(score(Table("a,b\n1,2\n", "x.csv"), {}), InputError);
  EXPECT_THROW(score(Table("peak_bytes,b\n1,2\n", "x.csv"), {}), MissingColumn);
  EXPECT_THROW(Table("a,b\n1\n", "x.csv"), InputError);
  EXPECT_THROW(Table("a,a\n1,2\n", "x.csv"), InputError);
  EXPECT_THROW(Table("", "x.csv"), InputError);
}

TEST(Score, AMeshThatDoesNotMultiplyToTheGpusIsRefusedAlone) {
  for (const char* table : {"atc24_memory", "atc24_throughput", "slimpipe_planner", "vtrain_multi_node"}) {
    EXPECT_TRUE(refusal_with(table, "gpus", "7").starts_with("x.csv: row 5, gpus = \"7\": tp·cp·pp·dp is "))
        << table;
    for (const char* no_number : {"0", "nan"})
      EXPECT_TRUE(refusal_with(table, "gpus", no_number).starts_with("x.csv: row 5, gpus = ")) << table;
    EXPECT_NE(refusal_with(table, "tp", "1048576"), "") << table;
  }
  EXPECT_NE(refusal_with("slimpipe_planner", "ep", "7").find("expected a divisor of tp·cp·dp"),
            std::string::npos);
  const Score calculon = score(with_cell("calculon_cases", 1, "gpus", "7"), reference_machines());
  ASSERT_EQ(calculon.refused.size(), 1u);
  EXPECT_EQ(calculon.refused[0].reason, "x.csv: row 1, gpus = \"7\": tp·cp·pp·dp is 8");
}

TEST(Score, OffloadRatiosAreFromZeroToOne) {
  for (const char* table : {"atc24_memory", "atc24_throughput", "slimpipe_planner"}) {
    for (const char* ratio : {"1.5", "-0.1", "OOM"}) {
      EXPECT_NE(refusal_with(table, "offload_ratio", ratio).find("expected a number from 0 to 1"),
                std::string::npos)
          << table << " " << ratio;
    }
  }
}

TEST(Score, AnUnknownNameIsRefusedAloneWithFileAndRow) {
  EXPECT_EQ(refusal_with("atc24_throughput", "hardware", "h80O"),
            "x.csv: row 5: no hardware file describes \"h80O\"; did you mean \"h800\"?");
  EXPECT_TRUE(
      refusal_with("atc24_throughput", "system", "theirs").starts_with("x.csv: row 5, system = \"theirs\""));
  for (const char* table : {"atc24_memory", "atc24_throughput", "slimpipe_planner"})
    EXPECT_TRUE(
        refusal_with(table, "model", "lama-65b").starts_with("x.csv: row 5: model \"lama-65b\" is unknown"))
        << table;
}

TEST(Score, APublishedFigureIsPositive) {
  const std::pair<const char*, const char*> figures[]{{"atc24_memory", "peak_bytes"},
                                                      {"atc24_throughput", "tokens_per_second"},
                                                      {"vtrain_multi_node", "iteration_ms"}};
  for (const auto& [table, column] : figures) {
    EXPECT_EQ(refusal_with(table, column, "0"),
              "x.csv: row 5, " + std::string(column) + " = \"0\": expected a positive number");
  }
}

TEST(Score, AnEmptyCellIsNoFigureAndNotOutOfMemory) {
  const KnownMachines known = reference_machines();
  for (const char* table : {"atc24_memory", "atc24_throughput"}) {
    const std::string column = table == std::string("atc24_memory") ? "peak_bytes" : "tokens_per_second";
    const Score result = score(with_cell(table, 5, column, ""), known);
    EXPECT_EQ(result.out_of_memory.size(), 3u) << table;
    ASSERT_EQ(result.refused.size(), 1u) << table;
    EXPECT_FALSE(result.refused[0].bad_input) << table;
    EXPECT_EQ(result.refused[0].reason, "no " + column + " is published");
  }
}

TEST(Score, WithoutARowItPrintsNoErrors) {
  const std::string text = read_source("bench/reference/calculon_cases.csv");
  const std::size_t header = text.find('\n') + 1;
  const std::string row = text.substr(header, text.find('\n', header) - header);
  const Table table(text.substr(0, header) + row.substr(0, row.rfind(',') + 1) + "\n", "x.csv");
  const Score result = score(table, reference_machines());
  const std::string printed = print_score(result);
  EXPECT_NE(printed.find("no figure is scored"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("mean"), std::string::npos) << printed;
  EXPECT_NE(print_score_json(result).find(R"("count":0,"mean":null)"), std::string::npos);
}

TEST(Score, RankCorrelationOfEqualOrdersIsOneAndOfOppositeOnesMinusOne) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 5, 9, 10}, {2, 3, 4, 50}), 1.0);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 5, 9}, {3, 2, 1}), -1.0);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 1, 2}, {1, 1, 2}), 1.0);
}

}  // namespace
}  // namespace penstock::plan
