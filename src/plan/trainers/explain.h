// SPDX-License-Identifier: Apache-2.0
// Reads and explains a configuration of another trainer.
#pragma once

#include <string>

#include "plan/trainers/job.h"

namespace penstock::plan {

struct Explained {
  std::string text;
  bool fits = false;
};

// Throws InputError like Job, and for a configuration that the trainer refuses.
Explained explain_configuration(const Today& today);

}  // namespace penstock::plan
