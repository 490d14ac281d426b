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
  // Only in tables of many trainers: the trainer, the machine and the kind of model.
  std::string engine, hardware, family;
  std::string group;  // rows that are ranked against each other: model, hardware and number of GPUs
  double tokens = 0;  // per step; 0: the quantity itself is a speed

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

// Hardware and engine files by name, for scoring timed tables.
struct KnownMachines {
  HardwareSet hardware;
  EngineSet engines;
};

// Rows with bad input are refused alone. Throws InputError for an unknown header or a missing column.
Score score(const Table& table, const KnownMachines& known);

struct ErrorStatistics {
  std::size_t count = 0;
  double mean = 0, median = 0, p90 = 0, greatest = 0;  // of absolute values
};
ErrorStatistics statistics_of(const Score& score);
ErrorStatistics statistics_of(std::vector<double> errors);

// Spearman correlation, per model with at least three figures.
std::map<std::string, double> rank_correlations(const Score& score);
double rank_correlation(const std::vector<double>& a,
                        const std::vector<double>& b);  // ties get their mean rank

// Whether faster rows of a group are also predicted to be faster.
struct Ranking {
  std::size_t pairs = 0, right = 0;      // pairs whose published speeds differ by more than 5 %
  std::size_t groups = 0, in_three = 0;  // of four rows or more; best published is in predicted top 3
};
Ranking ranking_of(const Score& score);

std::string print_score(const Score& score);
std::string print_score_json(const Score& score);

}  // namespace penstock::plan
