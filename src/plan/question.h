// SPDX-License-Identifier: Apache-2.0
// The question of a plan: the model, workload, cluster and search space to plan (plan/plan_options.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan_options.h"
#include "plan/trainer.h"

namespace penstock::plan {

struct Question {
  PlanOptions options;  // paths of hardware and engine are those from the working directory
  Workload workload;
  Cluster cluster;
  Words assumed;       // speeds that the hardware file leaves open, with their defaults
  std::string beside;  // the folder next to which bare names of hardware and engine were looked for too
};

// A question asked by flags: the keys of a plan file that are asked for most. Unset ones are the file's.
struct QuestionFlags {
  std::string model;  // a known model, or a config.json or its folder
  std::int64_t gpus = 0, seq_len = 0, batch = 0;
  std::string hardware, engine;
  friend bool operator==(const QuestionFlags&, const QuestionFlags&) = default;
};

// These flags as overrides, "--cluster.gpus=64".
std::vector<std::string> overrides_of(const QuestionFlags& flags);

// Reads the hardware file and the engine that the options name; bare names are looked for next to the folder
// `beside` too. Throws InputError.
Question settled(PlanOptions options, const std::string& beside);

// Reads the file, if there is one, then the overrides ("--section.key value"), then the hardware file and the
// engine that they name: paths in the file are those from its folder. Throws InputError.
Question read_question(const std::string& path, std::span<const std::string> overrides = {});

// The question as a plan file in any folder: what differs from the defaults.
std::string print_question_file(const Question& question);

}  // namespace penstock::plan
