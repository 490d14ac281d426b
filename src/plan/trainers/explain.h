// SPDX-License-Identifier: Apache-2.0
// A configuration of another trainer, read and explained.
#pragma once

#include <cstdint>
#include <string>

#include "plan/question.h"

namespace penstock::plan {

struct Today {
  std::string megatron;            // arguments; or
  std::string torchtitan, origin;  // a job file's text, and what errors call it
  std::int64_t gpus = 0;
  std::string hardware = "h100", limit;
};

struct Explained {
  std::string text;
  bool fits = false;
};

// Throws InputError as read_megatron and read_torchtitan, and for a configuration that the trainer refuses.
Explained explain_configuration(const Today& today);

}  // namespace penstock::plan
