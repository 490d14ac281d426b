// SPDX-License-Identifier: Apache-2.0
// Plan files: the model, workload, cluster and search space to plan (plan/plan_options.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan_options.h"

namespace penstock::cli {

struct PlanQuestion {
  plan::PlanOptions options;
  plan::Workload workload;
  plan::Cluster cluster;
  Words assumed;  // speeds that the hardware file leaves open, with their defaults
};

// A question asked by flags: the keys of a plan file that are asked for most. Unset ones are the file's.
struct PlanFlags {
  std::string model;  // a known model, or a config.json or its folder
  std::int64_t gpus = 0, seq_len = 0, batch = 0;
  std::string hardware;
  friend bool operator==(const PlanFlags&, const PlanFlags&) = default;
};

// These flags as overrides, "--cluster.gpus=64".
std::vector<std::string> overrides_of(const PlanFlags& flags);

// Reads the file, if there is one, then the overrides ("--section.key value"), then the hardware file that it
// names. Throws InputError.
PlanQuestion read_plan_file(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace penstock::cli
