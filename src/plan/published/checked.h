// SPDX-License-Identifier: Apache-2.0
// Prediction errors on published runs that the fit has not seen, and what they mean for a question: an
// interval for its step, from the most similar runs, and the ways in which it is outside all published runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/layout.h"
#include "plan/published/table.h"

namespace penstock::plan {

// A published run: the properties that similarity depends on, and its errors.
struct CheckedRun {
  std::string engine, family, source, configuration;
  mesh::Mesh mesh;
  bool shards_weights = false;
  Tokens seq_len = 0;
  double unseen_configuration = 0, unseen_source = 0;  // relative errors, as in FittedRow (reference_fit.h)
};

// "dense", "experts" or "long context".
std::string family_name(const Workload& workload);

// Reads engines/checked.csv, which `plan --fit FOLDER --checked FILE` writes (reference_fit.h). Throws
// InputError that names row and column.
std::vector<CheckedRun> read_checked(const Table& table);

// The question as a run with unknown errors. Its family is family_name(workload).
CheckedRun as_checked(const Workload& workload, const Layout& layout, const std::string& engine);

// Eight of ten real steps lie between these factors of the predicted step, judged by the most similar runs.
// Uses runs of the same engine, with unseen-configuration errors, if 20 or more are published; else all runs,
// with unseen-source errors. Absent without runs.
struct Interval {
  double low = 1, high = 1;
  std::size_t runs = 0;
  bool own_engine = false;
};
std::optional<Interval> interval_of(const CheckedRun& asked, const std::vector<CheckedRun>& runs);

// "no published run of nemo has more context ranks than 4 (here 8)", ...
Words outside_of(const CheckedRun& asked, const std::vector<CheckedRun>& runs);

// Fraction of runs whose step is in the interval that other runs give: other configurations of the same
// engine, or other sources, as for an unknown engine.
struct Coverage {
  double configurations = 0, sources = 0;
};
Coverage coverage_of(const std::vector<CheckedRun>& runs);

}  // namespace penstock::plan
