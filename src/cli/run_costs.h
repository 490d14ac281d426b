// SPDX-License-Identifier: Apache-2.0
// The analytic costs of a run file's program.
#pragma once

#include "cli/resolve.h"
#include "sim/model_costs.h"

namespace penstock::cli {

// Speeds that the analytic model assumes until a profile says better: one core's bf16 products, a copy
// through memory.
struct AssumedSpeeds {
  double flops_per_second = 1e11;
  double attention_flops_per_second = 5e10;
  double bytes_per_second = 5e9;
  double copy_bytes_per_second = 2e9;  // of offloading, each way
  double attention_factor = 1;         // what if attention took so many times as long
};

class RunCosts {
 public:
  explicit RunCosts(const ResolvedRun& run, const AssumedSpeeds& speeds = {});
  const sim::ModelCosts& costs() const { return costs_; }

 private:
  sim::ModelCosts costs_;
};

}  // namespace penstock::cli
