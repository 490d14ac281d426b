// SPDX-License-Identifier: Apache-2.0
// Fits the constants of the hardware files to the published rows of bench/reference, and measures the
// prediction error on unseen rows. No constant belongs to a row or model: each is an efficiency or a duration
// of a kind of machine, with a plausible range and a first guess that regularises it where the rows say
// little.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/published/score.h"

namespace penstock::plan {

struct FitParameter {
  std::vector<std::string> hardware;  // the files that share it
  std::string section, key;           // of the hardware file
  double guess = 0;
  double spread = 0;  // of the prior
  double low = 0, high = 0;
};

// A timed table with the assumed scatter of its rows. With `outliers`, rows beyond a few times that get less
// and less weight (its README mentions rows that are slow without a visible cause).
struct FitTable {
  Table table;
  double scatter = 0.01;
  bool outliers = false;
};

const std::vector<FitParameter>& fit_parameters();

// The fitted tables, by name ("atc24_throughput"), with their scatter.
std::vector<FitTable> reference_fit_tables(const std::function<Table(const std::string& name)>& read);

struct FittedRow {
  std::string table;
  ScoredFigure figure;              // predicted with all rows in the fit
  double unseen_row = 0;            // relative error with this row left out of the fit
  double unseen_configuration = 0;  // with all rows of the same model, machine and mesh left out
};

struct Fit {
  HardwareSet hardware;  // with the fitted constants
  std::vector<double> values;
  std::vector<FittedRow> rows;
};

// `leave_out`: also computes the errors on unseen rows (one fit per row, a few seconds).
Fit fit_reference(const std::vector<FitTable>& tables, const HardwareSet& start, bool leave_out);

std::string print_fit(const Fit& fit);

}  // namespace penstock::plan
