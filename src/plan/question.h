// SPDX-License-Identifier: Apache-2.0
// The input of a plan: the model, workload, cluster and search space (plan/plan_options.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan_options.h"
#include "plan/trainer.h"

namespace penstock::plan {

struct Question {
  PlanOptions options;  // hardware and engine paths are relative to the working directory
  Workload workload;
  Cluster cluster;
  Words assumed;       // speeds that the hardware file leaves open, with their defaults
  std::string beside;  // extra folder for the lookup of bare hardware and engine names
};

// Flags for the most common keys of a plan file. Unset flags leave the values of the file.
struct QuestionFlags {
  std::string model;  // a known model, or a config.json or its folder
  std::int64_t gpus = 0, seq_len = 0, batch = 0;
  std::string hardware, engine;
  friend bool operator==(const QuestionFlags&, const QuestionFlags&) = default;
};

// Whether --model names a config.json or its folder, not a known model.
bool is_model_path(const std::string& model);

// The flags as overrides, "--cluster.gpus=64".
std::vector<std::string> overrides_of(const QuestionFlags& flags);

// Reads the hardware file and the engine that the options name; looks up bare names in `beside` too
// (run::find_description). Throws InputError.
Question settled(PlanOptions options, const std::string& beside);

// Reads the file if `path` is not empty, then the overrides ("--section.key value"), then the hardware file
// and the engine that they name. Paths in the file are relative to its folder. Throws InputError.
Question read_question(const std::string& path, std::span<const std::string> overrides = {});

// The question as a plan file that works in any folder. Only values that differ from the defaults.
std::string print_question_file(const Question& question);

}  // namespace penstock::plan
