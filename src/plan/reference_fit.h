// SPDX-License-Identifier: Apache-2.0
// Finds the fitted constants of the hardware files on the published rows of bench/reference, and how well
// they predict rows they have not seen. No constant belongs to a row or to a model: each is an efficiency or
// a duration of a kind of machine, with a range in which it is plausible and a first guess that it is drawn
// to where the rows say little.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/score.h"

namespace penstock::plan {

struct FitParameter {
  std::vector<std::string> hardware;  // the files that share it
  std::string section, key;           // of the hardware file
  double guess = 0;
  double spread = 0;  // of the guess
  double low = 0, high = 0;
};

// A timed table, and by how much its rows are taken to scatter. Rows beyond a few times that count less and
// less where `outliers` (its README speaks of rows that are slow without a visible cause).
struct FitTable {
  Table table;
  double scatter = 0.01;
  bool outliers = false;
};

const std::vector<FitParameter>& fit_parameters();

// The tables that are fitted, read by name ("atc24_throughput"), with their scatter.
std::vector<FitTable> reference_fit_tables(const std::function<Table(const std::string& name)>& read);

struct FittedRow {
  std::string table;
  ScoredFigure figure;              // predicted with all rows seen
  double unseen_row = 0;            // relative error when the row itself was left out of the fit
  double unseen_configuration = 0;  // ... and with it all rows of the same model, machine and mesh
};

struct Fit {
  HardwareSet hardware;  // with the fitted constants
  std::vector<double> values;
  std::vector<FittedRow> rows;
};

// `leave_out`: also the errors on unseen rows (a fit per row, some seconds).
Fit fit_reference(const std::vector<FitTable>& tables, const HardwareSet& start, bool leave_out);

std::string print_fit(const Fit& fit);

}  // namespace penstock::plan
