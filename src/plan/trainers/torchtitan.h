// SPDX-License-Identifier: Apache-2.0
// torchtitan's job files (TOML). Keys and values are from torchtitan/config/job_config.py of torchtitan 0.2.2
// on PyPI.
#pragma once

#include <string>

#include "plan/trainers/settings.h"

namespace penstock::plan {

// Names are "section.key".
Settings torchtitan_settings(const Workload& workload, const Layout& layout);
std::string print_torchtitan(const Settings& settings);

}  // namespace penstock::plan
