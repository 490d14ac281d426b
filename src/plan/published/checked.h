// SPDX-License-Identifier: Apache-2.0
// How far predictions are off on published runs that the fit has not seen, and what that says of a question:
// an interval for its step, from the runs that are most like it, and where nothing like it was ever checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/layout.h"
#include "plan/published/table.h"

namespace penstock::plan {

// A published run, as far as likeness depends on it.
struct CheckedRun {
  std::string engine, family, source, configuration;
  mesh::Mesh mesh;
  bool shares_weights = false;
  Tokens seq_len = 0;
  double unseen_configuration = 0, unseen_source = 0;  // relative errors, as FittedRow's (reference_fit.h)
};

// "dense", "experts" or "long context".
std::string family_name(const Workload& workload);

// engines/checked.csv, which `plan --fit FOLDER --checked FILE` writes (reference_fit.h). Throws InputError
// that names row and column.
std::vector<CheckedRun> read_checked(const Table& table);

// What is asked, as a run whose errors are not known. The family is Workload's.
CheckedRun as_checked(const Workload& workload, const Layout& layout, const std::string& engine);

// Factors of a predicted step between which eight of ten such steps lie, by the runs that are most like it:
// of its own engine where 20 or more are published, with the errors of unseen configurations; else of all,
// with those of unseen sources. Absent without runs.
struct Interval {
  double low = 1, high = 1;
  std::size_t runs = 0;
  bool own_engine = false;
};
std::optional<Interval> interval_of(const CheckedRun& asked, const std::vector<CheckedRun>& runs);

// "nothing published has c above 4 (asked: 8)", ...
Words outside_of(const CheckedRun& asked, const std::vector<CheckedRun>& runs);

// The share of runs whose step is in the interval that the others give: of other configurations, as one of
// its own engine; of other sources, as one of an unknown engine.
struct Coverage {
  double configurations = 0, sources = 0;
};
Coverage coverage_of(const std::vector<CheckedRun>& runs);

}  // namespace penstock::plan
