// SPDX-License-Identifier: Apache-2.0
// Values of the extension module: costs of any kind, and a simulated program.
#pragma once

#include <memory>
#include <utility>

#include "schedule/program.h"
#include "sim/costs/costs.h"
#include "sim/costs/table.h"
#include "sim/result.h"

namespace penstock::python {

struct CostsValue {
  std::shared_ptr<const sim::Costs> costs;
  std::shared_ptr<const sim::CostTable> table = {};  // the same costs, if they are a table; else null
};

inline CostsValue costs_value(sim::CostTable costs) {
  const auto table = std::make_shared<const sim::CostTable>(std::move(costs));
  return {table, table};
}

template <class Kind>
CostsValue costs_value(Kind costs) {
  return {std::make_shared<const Kind>(std::move(costs))};
}

// Keeps the program alive for the result, whose timeline refers to it.
struct Simulated {
  std::shared_ptr<const schedule::Program> program;
  sim::Result result;
};

}  // namespace penstock::python
