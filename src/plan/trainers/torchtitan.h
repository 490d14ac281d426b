// SPDX-License-Identifier: Apache-2.0
// torchtitan's job files (TOML). Keys and their values are those of torchtitan/config/job_config.py of
// torchtitan 0.2.2 on PyPI.
#pragma once

#include <string>

#include "plan/trainers/settings.h"

namespace penstock::plan {

// Names are "section.key".
Settings torchtitan_settings(const Workload& workload, const Layout& layout);
std::string print_torchtitan(const Settings& settings);

// Reads what time and memory depend on, and asks plan's question of it; other sections are passed over.
// Throws InputError that names file, section and key: an unknown key of [parallelism],
// [activation_checkpoint] or [training] (with the nearest), a model whose sizes are not known, degrees that
// do not fill the devices.
void read_torchtitan(const std::string& text, const std::string& origin, PlanOptions& options);

}  // namespace penstock::plan
