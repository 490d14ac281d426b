// SPDX-License-Identifier: Apache-2.0
// A trainer's configuration as names and values in the trainer's own words.
#pragma once

#include <string>
#include <vector>

#include "plan/plan_print.h"
#include "plan/question.h"

namespace penstock::plan {

struct Setting {
  std::string name;
  std::string value;  // empty: a flag without one
  friend bool operator==(const Setting&, const Setting&) = default;
};
using Settings = std::vector<Setting>;

// Settings of a layout, for Megatron-LM (megatron.h) or torchtitan (torchtitan.h). Throws InputError for
// models without SwiGLU MLPs (models.h).
Settings settings_of(const Trainer& trainer, const Workload& workload, const Layout& layout);

// Settings in the trainer's format, for `plan --export`: shell arguments, or a job TOML. Begins with a
// comment that names the plan and the version. Throws likewise.
std::string print_settings(const Trainer& trainer, const Plan& plan, const Candidate& candidate);

// In the trainer's words: "--tensor-model-parallel-size 4", "training.seq_len = 8192".
std::string word_of(const Trainer& trainer, const Setting& setting);

}  // namespace penstock::plan
