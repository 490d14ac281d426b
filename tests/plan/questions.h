// SPDX-License-Identifier: Apache-2.0
// What tests ask the planner.
#pragma once

#include "plan/models.h"
#include "reference.h"
#include "sim/costs/engine.h"

namespace penstock::plan {

inline Workload workload(const char* model, Tokens seq_len, std::int64_t batch) {
  return {find_model(model), seq_len, batch};
}

inline Cluster cluster(std::int64_t gpus, const char* hardware = "h800") {
  Cluster cluster{read_hardware(hardware), gpus, 0, sim::kPenstock};
  cluster.limit = cluster.hardware.usable_bytes();
  return cluster;
}

}  // namespace penstock::plan
