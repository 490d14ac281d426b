// SPDX-License-Identifier: Apache-2.0
// Plan files: the model, workload, cluster and search space to plan (plan/plan_options.h).
#pragma once

#include <span>
#include <string>

#include "plan/plan_options.h"

namespace penstock::cli {

struct PlanQuestion {
  plan::PlanOptions options;
  plan::Workload workload;
  plan::Cluster cluster;
  Words assumed;  // speeds that the hardware file leaves open, with their defaults
};

// Reads the file, then the overrides ("--section.key value"), then the hardware file that it names. Throws
// InputError.
PlanQuestion read_plan_file(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace penstock::cli
