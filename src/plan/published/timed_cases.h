// SPDX-License-Identifier: Apache-2.0
// Rows of the timed tables as inputs of the cost model.
#pragma once

#include <string>

#include "plan/layout.h"
#include "plan/published/table.h"
#include "sim/costs/engine.h"

namespace penstock::plan {

struct TimedCase {
  Workload workload;
  Layout layout;
  std::string hardware;  // name of a hardware file
  const sim::Engine* engine = nullptr;
};

TimedCase kwai_timed_case(const Table& table, std::size_t row);
TimedCase calculon_case(const Table& table, std::size_t row);
TimedCase vtrain_case(const Table& table, std::size_t row);

}  // namespace penstock::plan
