// SPDX-License-Identifier: Apache-2.0
// Predictions next to published figures. Tables of the formats in bench/reference are recognised by their
// header.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/engine_file.h"
#include "plan/published/table.h"
#include "sim/costs/engine.h"
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
  // Of tables of many programs: whose run it is, on what, and which kind of model.
  std::string engine, hardware, family;
  std::string group;  // rows that are ranked against each other: model, hardware and number of GPUs
  double tokens = 0;  // of a step; 0: the quantity itself is a speed

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

// A row that the model cannot express, or that cannot be true.
struct RefusedRow {
  std::size_t row = 0;
  std::string setting, reason;
  bool bad_input = false;  // the reason is an error of the table
};

enum class ErrorKind { Relative, Absolute };

struct Score {
  std::string kind;  // "atc24_memory", ...
  ErrorKind error_kind = ErrorKind::Relative;
  std::vector<ScoredFigure> figures;
  std::vector<ScoredOutOfMemory> out_of_memory;
  std::vector<ScoredOutOfMemory> does_not_fit;  // rows that ran and are predicted not to
  std::vector<RefusedRow> refused;
  std::vector<std::string> notes;  // conventions, omitted rows and the reasons
};

using HardwareSet = std::map<std::string, sim::Hardware>;

using EngineSet = std::map<std::string, NamedEngine>;

// What timed tables are scored with: hardware and engine files by their name.
struct KnownMachines {
  HardwareSet hardware;
  EngineSet engines;
};

// Throws InputError for an unknown header, or a cell that is not a number.
Score score(const Table& table, const KnownMachines& known);

struct ErrorStatistics {
  std::size_t count = 0;
  double mean = 0, median = 0, p90 = 0, greatest = 0;  // of absolute values
};
ErrorStatistics statistics_of(const Score& score);
ErrorStatistics statistics_of(std::vector<double> errors);

// Spearman's, per model with at least three distinct published figures.
std::map<std::string, double> rank_correlations(const Score& score);
double rank_correlation(const std::vector<double>& a,
                        const std::vector<double>& b);  // ties get their mean rank

// Among rows of one group: are the faster ones predicted to be faster?
struct Ranking {
  std::size_t pairs = 0, right = 0;      // whose published speeds differ by more than 5 %
  std::size_t groups = 0, in_three = 0;  // of four rows and more; the published best is among the first three
};
Ranking ranking_of(const Score& score);

std::string print_score(const Score& score);
std::string print_score_json(const Score& score);

}  // namespace penstock::plan
