// SPDX-License-Identifier: Apache-2.0
// Reads and explains a configuration of another trainer.
#pragma once

#include <cstdint>
#include <string>

#include "plan/question.h"

namespace penstock::plan {

struct Today {
  std::string megatron;            // arguments; if empty, uses `torchtitan`
  std::string torchtitan, origin;  // text of a job file, and its name in errors
  std::int64_t gpus = 0;
  std::string hardware = "h100", limit;
};

struct Explained {
  std::string text;
  bool fits = false;
};

// Throws InputError like read_megatron and read_torchtitan, and for a configuration that the trainer refuses.
Explained explain_configuration(const Today& today);

}  // namespace penstock::plan
