// SPDX-License-Identifier: Apache-2.0
// Predictions next to published figures. Tables of the formats in bench/reference are recognised by their
// header.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/published/table.h"
#include "sim/costs/hardware.h"

namespace penstock::plan {

// One predicted figure of one row.
struct ScoredFigure {
  std::size_t row = 0;   // in the table, from 0
  std::string model;     // rank correlation is computed per model
  std::string setting;   // "t4 c2 p8 d4 v2, recompute full"
  std::string quantity;  // "peak GB", "tokens/s", "bubble %"
  double predicted = 0;
  double published = 0;

  double error() const { return predicted - published; }
  double relative_error() const { return (predicted - published) / published; }
};

// A row that ran out of memory, and whether that was predicted.
struct ScoredOutOfMemory {
  std::size_t row = 0;
  std::string setting;
  double predicted_bytes = 0;
  bool predicted_to_fit = false;
};

enum class ErrorKind { Relative, Absolute };

struct Score {
  std::string kind;  // "atc24_memory", ...
  ErrorKind error_kind = ErrorKind::Relative;
  std::vector<ScoredFigure> figures;
  std::vector<ScoredOutOfMemory> out_of_memory;
  std::vector<std::string> notes;  // conventions, omitted rows and the reasons
};

// `hardware` by name; only timed tables need it. Throws InputError for an unknown header, or a cell that is
// not a number.
using HardwareSet = std::map<std::string, sim::Hardware>;
Score score(const Table& table, const HardwareSet& hardware);

struct ErrorStatistics {
  std::size_t count = 0;
  double mean = 0, median = 0, p90 = 0, greatest = 0;  // of absolute values
};
ErrorStatistics statistics_of(const Score& score);

// Spearman's, per model with at least three distinct published figures.
std::map<std::string, double> rank_correlations(const Score& score);
double rank_correlation(const std::vector<double>& a,
                        const std::vector<double>& b);  // ties get their mean rank

std::string print_score(const Score& score);
std::string print_score_json(const Score& score);

}  // namespace penstock::plan
