// SPDX-License-Identifier: Apache-2.0
// Tables of published training throughput (bench/reference/throughput): one run per row, from many trainers,
// with its whole mesh. The text in the columns recompute, fsdp_or_zero and notes is matched by phrases
// (docs/engines.md).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "plan/published/timed_cases.h"

namespace penstock::plan {

struct ThroughputRun {
  std::size_t row = 0;
  std::string source;  // the project, without the file: "mosaicml/llm-foundry"
  std::string model;
  TimedCase timed;
  Seconds published = 0;  // per step

  std::string setting() const;
  std::string group(const Table& table) const;  // ScoredFigure::group
  double tokens() const;                        // per step
};

// The scored rows in order, and the rows that are not scored, with the reason: the model cannot express them,
// they cannot be true, or they are bad input (a cell that is not a number, an unknown engine or hardware, a
// mesh that does not multiply up). Throws InputError for a missing column.
struct ThroughputTable {
  std::vector<ThroughputRun> runs;
  std::vector<RefusedRow> refused;
};
ThroughputTable read_throughput(const Table& table, const KnownMachines& known);

}  // namespace penstock::plan
