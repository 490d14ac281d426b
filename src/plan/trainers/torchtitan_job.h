// SPDX-License-Identifier: Apache-2.0
// A job file of torchtitan 0.2.2: the keys that a step's time and memory depend on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"

namespace penstock::plan {

// Defaults are from torchtitan/config/job_config.py.
struct TitanJob {
  std::string model = "llama3", flavor = "debugmodel";
  std::int64_t local_batch = 8, global_batch = -1, seq_len = 2048;  // sequences per data rank, per step
  std::int64_t replicate = 1, shard = -1, tp = 1, pp = 1, cp = 1, ep = 1, expert_tp = 1;
  std::string reshard = "default";
  std::int64_t layers_per_stage = 0, micro_batch = 1, first_less = 1, last_less = 1;
  std::string schedule = "1F1B";
  bool overlaps_experts = true;  // in DualPipeV
  std::string recomputation = "selective", selective = "2";
  bool compiles = false;
  Words compiled = {"model", "loss"};

  bool compiles_model() const;
};

// Each value of the file is read, is known not to affect a step's time and memory, or is refused by name
// unless it has a value that is predicted. Throws InputError that begins with file and line for a key that
// torchtitan does not have (with the nearest), a value of another type, a degree below 1, and what torchtitan
// itself refuses, in its words.
TitanJob read_titan_job(const std::vector<GivenValue>& values, const std::string& origin);

}  // namespace penstock::plan
