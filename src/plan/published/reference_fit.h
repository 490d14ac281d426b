// SPDX-License-Identifier: Apache-2.0
// Fits the constants of hardware and engine files to the published rows of bench/reference, and measures the
// prediction error on unseen rows. No constant belongs to a row or model: each is an efficiency or a duration
// of a type of machine or of a trainer, with a plausible range and a first guess that regularises it where
// the rows constrain it little. Constants of one class of engines or machines are regularised towards the
// centre of the class, which is fitted too and replaces them if all their rows are left out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/published/checked.h"
#include "plan/published/timed_cases.h"

namespace penstock::plan {

struct FitParameter {
  std::vector<std::string> files;  // hardware or engine files that share it; empty: a centre
  std::string section, key;        // of the file
  double guess = 0;
  double spread = 0;  // of the prior
  double low = 0, high = 0;
  bool engine = false;      // the files are engine files
  std::string also = {};    // a second key of the section with the same value
  std::string centre = {};  // name of the class, also for the centre itself

  std::string name() const;  // "efficiency.matrix of h800"
  bool is_alike(const FitParameter& other) const {
    return section == other.section && key == other.key && centre == other.centre;
  }
};

// A timed table with the assumed scatter of its rows. With `outliers`, rows beyond a few times the scatter
// get less and less weight (its README mentions rows that are slow without a visible cause).
struct FitTable {
  std::string name;
  Table table;
  double scatter = 0.01;
  bool outliers = false;
  bool by_row = true;  // rows are left out one by one too
};

const std::vector<FitParameter>& fit_parameters();

// The fitted tables, by name ("atc24_throughput"), with their scatter.
std::vector<FitTable> reference_fit_tables(const std::function<Table(const std::string& name)>& read);

struct FittedRow {
  std::string table;
  std::string configuration, source;
  TimedCase timed;
  ScoredFigure figure;              // predicted with all rows in the fit
  double unseen_row = 0;            // relative error with this row left out of the fit
  double unseen_configuration = 0;  // ... with all rows of the same model, machine and mesh
  double unseen_source = 0;         // ... with all rows of the same project
};

struct Fit {
  KnownMachines known;  // with the fitted constants
  std::vector<double> values, deviations;
  std::vector<FittedRow> rows;
};

// `leave_out`: also computes the errors on unseen rows (a fit for every configuration and source, minutes).
Fit fit_reference(const std::vector<FitTable>& tables, const KnownMachines& start, bool leave_out);

std::string print_fit(const Fit& fit);

// The runs that plans need for their intervals (checked.h); print_checked prints engines/checked.csv.
std::vector<CheckedRun> checked_runs(const Fit& fit);
std::string print_checked(const Fit& fit);

}  // namespace penstock::plan
